//! Programs on the parts of a grid, without MPI.

mod bits;
mod converging;
mod durable;
mod errors;
mod model;
mod problems;
mod resident;
mod shots;
mod undivided;

#[path = "../../../sweep/tests/it/faulty.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "the tests of `sweep` use more of it")]
mod faulty;
