//! Programs as C and CUDA C text.
//!
//! A translation unit has one function per *segment*, a block of the program that runs natively in one go; all
//! threads of a launch call it and split parallel loops between them. `codegen` prints; it does not run
//! compilers and knows no files.
//!
//! A parallel loop is printed twice (see [`par`](crate)): a *careful* form, one element at a time, every index
//! checked, and an *interior* form without checks, divisions or boundary branches. On entry the loop computes the
//! interval of the innermost index on which the assumptions of the interior form hold. It runs that interval in the
//! interior form, in vectors where possible, and the rest in the careful form.
#![forbid(unsafe_code)]

mod address_reuse;
mod barriers;
mod body;
mod body_loops;
mod bounds_proof;
mod branches;
mod c_types;
mod deferred;
mod exact;
mod fault;
mod grid_reduction;
mod interchange;
mod interchanged;
mod interior;
mod kernel;
mod lanes;
mod library;
mod loop_invariants;
mod narrow_index;
mod operation;
mod ordered_scatter;
mod par;
mod product;
mod program_loops;
mod region;
mod register_pressure;
mod segment;
mod sink_stores;
mod specialise_interior;
mod stores;
mod thread_ownership;
mod unit;

pub use fault::{Access, Raised};
pub use ordered_scatter::{STAGING_WORDS, staging_bytes};
pub use unit::{Target, Unit, WORTH_SHARING, Width, c_unit, cuda_unit};
