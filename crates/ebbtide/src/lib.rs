//! Differentiable compute programs with first-class checkpoints.
//!
//! A simulation is written as an ordinary Rust function: time loops, parallel loops, arrays updated in place.
//! Ebbtide makes it a program that is checked, printed, compiled for a device and launched.
//!
//! ```
//! use ebbtide::prelude::*;
//!
//! /// Viscous Burgers on a periodic line, `steps` explicit steps, in place.
//! #[program]
//! fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
//!     let n = u.len();
//!     for _t in 0..steps {
//!         for i in par(0..n) {
//!             let l = u[(i + n - 1) % n];
//!             let r = u[(i + 1) % n];
//!             next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
//!         }
//!         swap(u, next);
//!     }
//! }
//!
//! // The program as text; a build error would say all that is wrong with it.
//! println!("{}", burgers());
//!
//! let device = Device::best()?;
//! let mut u = device.array(&[0.0, 1.0, 0.0, 0.0])?;
//! let mut next = device.zeros([4])?;
//! let compiled = burgers().compile(&device)?;
//! compiled.launch((&mut u, &mut next, 0.25, 1.0, 1))?;
//! assert_eq!(u.to_vec(), [0.25, 0.5, 0.25, 0.0]);
//! # Ok::<(), ebbtide::Error>(())
//! ```
//!
//! Its gradient goes through all steps in as much memory as you give it:
//!
//! ```
//! # use ebbtide::prelude::*;
//! # #[program]
//! # fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, dt: f64, steps: usize) {
//! #     let n = u.len();
//! #     for _t in 0..steps {
//! #         for i in par(0..n) {
//! #             let l = u[(i + n - 1) % n];
//! #             let r = u[(i + 1) % n];
//! #             next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) - 0.5 * u[i] * (r - l));
//! #         }
//! #         swap(u, next);
//! #     }
//! # }
//! #[program]
//! fn misfit(
//!     u: &mut Array1<f64>, next: &mut Array1<f64>, nu: f64, steps: usize, seen: &Array1<f64>, loss: &mut Array0<f64>,
//! ) {
//!     burgers(u, next, nu, 0.01, steps); // programs call programs
//!     for i in par(0..u.len()) {
//!         loss[[]] += 0.5 * (u[i] - seen[i]) * (u[i] - seen[i]);
//!     }
//! }
//!
//! let device = Device::best()?;
//! let (u, next) = (device.array(&[0.0, 1.0, 0.5, 0.0])?, device.zeros([4])?);
//! let (seen, loss) = (device.array(&[0.2, 0.4, 0.4, 0.3])?, device.zeros([])?);
//!
//! let gradient = misfit().value_and_grad(misfit::loss).wrt(misfit::u).wrt(misfit::nu);
//! let gradient = gradient.memory(Bytes::kib(64)).compile(&device)?;
//! let out = gradient.launch((&u, &next, 0.1, 1000, &seen, &loss))?;
//! let (value, du, dnu) = (out.value(misfit::loss)?.value(), out.get(misfit::u)?, out.get(misfit::nu)?);
//! assert!(value > 0.0 && du.len() == 4 && dnu.is_finite());
//! # Ok::<(), ebbtide::Error>(())
//! ```
//!
//! [The guide](https://github.com/ebbtide/ebbtide/blob/main/docs/src/SUMMARY.md) has the
//! [first hour](https://github.com/ebbtide/ebbtide/blob/main/docs/src/first.md), the
//! [language](https://github.com/ebbtide/ebbtide/blob/main/docs/src/language.md),
//! [gradients and memory plans](https://github.com/ebbtide/ebbtide/blob/main/docs/src/gradients.md), a
//! [cookbook](https://github.com/ebbtide/ebbtide/blob/main/docs/src/cookbook.md) and the
//! [API at a glance](https://github.com/ebbtide/ebbtide/blob/main/docs/src/api.md).
//!
//! One import, [`prelude`], has everything that a program needs. [`program`](macro@program) documents what `#[program]`
//! understands.
#![forbid(unsafe_code)]

// The macros name this crate by its own name, also where they are used inside it.
extern crate self as ebbtide;

mod device;
pub mod library;
#[cfg(feature = "tape")]
mod on_tape;

pub use device::Devices;
pub use ebbtide_fields as fields;
pub use ebbtide_ir as ir;
#[doc(hidden)]
pub use ebbtide_lang as __lang;
pub use ebbtide_lang::items::{copy, fill, par, rand, scatter_unique, select, swap};
pub use ebbtide_lang::library::{compact, matmul, scan, transposed};
pub use ebbtide_lang::parts::{all_max, all_min, all_sum, exchange, exchange_add, shared};
pub use ebbtide_lang::reductions::{dot, max, min, norm, sum};
pub use ebbtide_lang::{
    Arrays, Budget, Bytes, Compiled, CompiledGrad, CompiledProduct, Differentiable, DifferentiableLeaf,
    Direction, Done, Element, Float, Floats, FloatsMut, Gradient, Gradients, Host, Label, Leaves, Mat2, Mat3,
    Mat4, Name, Number, Optimisation, Plan, Product, Program, Ran, Rate, Rates, Tiers, Value, Vec2, Vec3,
    Vec4,
};
pub use ebbtide_macros::{
    Arrays, Label, Value, checkpoint, func, operation, program, programs, relaxed, reverse,
};
pub use ebbtide_runtime::{
    Array, Array0, Array1, Array2, Array3, Array4, Cancel, Device, Error, HostView, HostViewMut, Next,
    Pending, Position, Progress, Result, Shortage, Status, Yielded,
};
#[cfg(feature = "tape")]
pub use on_tape::{OnTape, TapeOperation, TapeProgram};

/// Everything that programs and their hosts are written with.
pub mod prelude {
    pub use crate::{
        Array, Array0, Array1, Array2, Array3, Array4, Arrays, Budget, Bytes, Cancel, Compiled, CompiledGrad,
        Device, Devices, Direction, Done, Float, Gradients, Label, Leaves, Mat2, Mat3, Mat4, Name, Next,
        Number, Pending, Plan, Program, Status, Value, Vec2, Vec3, Vec4, Yielded, all_max, all_min, all_sum,
        checkpoint, compact, copy, dot, exchange, exchange_add, fill, func, matmul, max, min, norm,
        operation, par, program, programs, rand, relaxed, reverse, scan, scatter_unique, select, shared, sum,
        swap, transposed,
    };
}
