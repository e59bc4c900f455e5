//! Linear algebra and Fourier transforms that programs call, at program level: `use ebbtide::library::{fft, solve};`.
//!
//! Each is a program in the language itself, so its bits are the same on every device and for every number of threads, and
//! each can be differentiated, to the second order too. Outside programs they are functions of arrays. The order of
//! operations that each documents is part of its meaning.
//!
//! ```
//! use ebbtide::library::solve;
//! use ebbtide::prelude::*;
//!
//! /// How far a loaded structure gives way.
//! #[program]
//! fn compliance(stiffness: &Array2<f64>, load: &Array1<f64>, out: &mut Array0<f64>) {
//!     let mut moved = Array1::<f64>::zeros([load.len()]);
//!     solve(stiffness, load, moved);
//!     out[[]] = dot(load, moved);
//! }
//!
//! let device = Device::best()?;
//! let (k, f) = (device.array_with_shape([2, 2], &[2.0, 0.0, 0.0, 4.0])?, device.array(&[1.0, 1.0])?);
//! let g = compliance().value_and_grad(compliance::out).wrt(compliance::stiffness).compile(&device)?;
//! let out = g.launch((&k, &f, &device.scalar(0.0)?))?;
//! assert_eq!(out.value(compliance::out)?.value(), 0.75);
//! assert_eq!(out.get(compliance::stiffness)?.to_vec(), [-0.25, -0.125, -0.125, -0.0625]);
//! # Ok::<(), ebbtide::Error>(())
//! ```

mod cholesky_factor;
mod elimination;
mod fourier;
mod tridiagonal;

pub use cholesky_factor::cholesky;
pub use elimination::solve;
pub use fourier::{fft, ifft};
pub use tridiagonal::solve_tridiagonal;

/// The programs behind the operations, also without the derivatives that they bring; for tests.
#[doc(hidden)]
pub mod programs {
    pub use super::cholesky_factor::{cholesky_batch, cholesky_matrix};
    pub use super::elimination::{eliminate, eliminate_each, solve_batch, solve_columns};
    pub use super::fourier::{fft_row, fft_rows, transform_row, transform_rows};
    pub use super::tridiagonal::{tridiagonal_row, tridiagonal_rows};
}
