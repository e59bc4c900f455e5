//! Programs on the parts of a grid, without MPI.

mod bits;
mod errors;
mod problems;
mod undivided;
