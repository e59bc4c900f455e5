//! Programs as C and CUDA C text.
//!
//! A translation unit has one function per *segment*, a block of the program that runs natively in one go; all
//! threads of a launch call it and split parallel loops between them. `codegen` prints; it does not run
//! compilers and knows no files.
//!
//! A parallel loop is printed twice (see [`par`](crate)): a *careful* form, one element at a time, every index
//! checked, and an *interior* form without checks, divisions or boundary branches. On entry the loop computes the
//! interval of the innermost index on which all that the interior form takes for granted holds, runs that
//! interval in the interior form, in vectors where it can, and the rest in the careful form.
#![forbid(unsafe_code)]

mod body;
mod branches;
mod c_types;
mod deferred;
mod exact;
mod guarded;
mod inner;
mod interchange;
mod interchanged;
mod interior;
mod kernel;
mod lanes;
mod late;
mod leaves;
mod library;
mod mapping;
mod narrow;
mod near;
mod operation;
mod outer;
mod par;
mod pending;
mod product;
mod raised;
mod region;
mod segment;
mod staged;
mod stores;
mod unit;
mod usual;

pub use raised::{Access, Raised};
pub use staged::{STAGE, staging_bytes};
pub use unit::{Target, Unit, Width, c_unit, cuda_unit};
