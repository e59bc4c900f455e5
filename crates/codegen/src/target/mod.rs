//! Targets: each prints the segments of a program and what must stand before them.

mod c;
mod cuda;
mod parts;

pub use c::c_unit;
pub use cuda::cuda_unit;
