//! Elementary functions, written once.
//!
//! A program gives the same bits interpreted, as scalar C, as vector C and as CUDA C, because each function is
//! written here once, over the abstract operations of [`Ops`], and every device runs or prints those
//! operations: [`Native64`] and [`Native32`] compute with Rust's numbers, [`c`] prints C and CUDA C. There are
//! no branches on data and no table look-ups on the usual paths, so that the text vectorises.
//!
//! This crate knows numbers. It does not know programs, arrays, compilers or devices.
//!
//! ```
//! use ebbtide_math::{Function, Native64, powi_f64, rand_f64};
//!
//! assert_eq!(Function::Tanh.eval_f64(&[0.0])?, 0.0);
//! assert_eq!(Function::Exp.emit(&mut Native64, &[0.0])?, 1.0);
//! assert_eq!(powi_f64(3.0, 4), 81.0);
//! assert!((0.0..1.0).contains(&rand_f64(7, 0)));
//! # Ok::<(), ebbtide_math::MathError>(())
//! ```
//!
//! # Accuracy
//!
//! Against correctly rounded references, special values included: at most 2 ulp for `exp ln sin cos tanh sqrt
//! powf`, 4 ulp for the others, over the whole range of both formats. `cargo run --release --example ulp` prints
//! what is measured. In `f32`, `exp ln sin cos tanh` have a form of their own, `powf` and `powi` a shorter `f64`
//! one, and the others are the `f64` functions rounded once more.
//!
//! The coefficients are our own: polynomials through the function at Chebyshev points, computed with 70 digits and
//! then rounded. The error beside each table is the largest relative error of the assembled function with the
//! rounded coefficients, sampled at 400 points.
#![forbid(unsafe_code)]

mod arith;
mod basic;
pub mod c;
mod erf;
mod error;
mod exp;
mod function;
mod huge;
mod inverse;
mod kernel;
mod log;
mod native;
mod ops;
mod pow;
mod random;
mod trig;

pub use error::MathError;
pub use function::Function;
pub use kernel::{Kernel, Trig};
pub use native::{Native32, Native64};
pub use ops::{Format, Ops, Table};
pub use random::philox4x32_10;

/// `x^n` for a constant `n`, computed or printed: the bits of [`Kernel::Powi`] with only the operations that this
/// `n` needs.
pub fn powi_constant<O: Ops>(o: &mut O, x: O::F, n: i32) -> O::F {
    pow::powi_constant(o, x, n)
}

/// `x^n` in `f64`.
pub fn powi_f64(x: f64, n: i32) -> f64 {
    pow::powi(&mut Native64, x, i64::from(n))
}

/// `x^n` in `f32`.
pub fn powi_f32(x: f32, n: i32) -> f32 {
    pow::powi(&mut Native32, x, n)
}

/// The random number at `index` of the stream `seed`, a multiple of 2^-53 in [0, 1).
///
/// Philox4x32-10 with the key (low half of seed, high half of seed) and the counter (low half of index, high half
/// of index, 0, 0); of its output `w0 w1 w2 w3` the number is (w0 * 2^21 + floor(w1 / 2^11)) / 2^53.
pub fn rand_f64(seed: i64, index: i64) -> f64 {
    random::rand(&mut Native64, seed, index)
}

/// As [`rand_f64`] with 24 bits: floor(w0 / 2^8) / 2^24.
pub fn rand_f32(seed: i64, index: i64) -> f32 {
    random::rand_single(&mut Native64, seed, index) as f32
}
