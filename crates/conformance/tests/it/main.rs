//! The contract, on the interpreter, on the CPU, and where asked for on CUDA.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod boundaries;
mod c_text;
mod cache;
mod cancel;
mod cases;
mod cuda;
mod cuda_text;
mod devices;
mod extremes;
mod gathers;
mod gradients;
mod hostile;
mod interchange;
mod introspection;
mod judges;
mod library;
mod loops;
mod meetings;
mod model;
mod nests;
mod operations;
mod optimize;
mod oracle;
mod programs;
mod random;
mod renumbered;
mod row_tiles;
mod rows_together;
mod scatters;
mod sharing;
mod stages;
mod sum_chains;
mod swaps;
mod term_runs;
mod traces;
mod triangles;
mod waiting;
mod whole_arrays;
mod workloads;
mod yields;

use random::{gradients as random_gradients, regressions};
