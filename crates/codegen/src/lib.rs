//! Programs as C and CUDA C text.
//!
//! A translation unit has one function per *segment*, a block of the program that runs natively in one go; all
//! threads of a launch call it and split parallel loops between them. `codegen` prints; it does not run
//! compilers and knows no files.
//!
//! A parallel loop has two forms on a CPU (see `print::par`): a *careful* form, one element at a time, every index
//! checked, and an *interior* form without checks, divisions or boundary branches. On entry the loop computes the
//! interval of the innermost index on which the assumptions of the interior form hold. It runs that interval in the
//! interior form, in vectors where possible, and the rest in the careful form.
//!
//! An iteration is a tree of statements (`kernel`), lowered from the program once for each form and brought into it by steps
//! (`transform`) that follow what analyses say (`analysis`); `print` and `target` alone know a language.
#![forbid(unsafe_code)]

mod analysis;
mod kernel;
mod prelude;
mod print;
mod target;
mod transform;
mod unit;

pub use analysis::bucket_scatter::room_for_notes;
pub use analysis::kept_terms::{TERM_WORDS, room_for_terms, sums_of_kept_terms};
pub use analysis::ordered_updates::{STAGING_WORDS, loops_on_one_thread, staging_bytes};
pub use analysis::term_runs::{RoomForRuns, bytes_of_loop, bytes_of_open_runs, room_for_runs};
pub use kernel::machine::{LONG_CHAIN, Target, Threads, WORTH_SHARING, Width};
pub use kernel::term_runs::TermRuns;
pub use target::{c_unit, cuda_unit};
pub use unit::{Access, COUNTERS, FaultReport, Position, Unit};
