//! Program in, program out: adjoints of programs.
//!
//! The result of [`gradient`] is a program like any other: it prints, verifies and compiles. Its shape:
//!
//! 1. working copies of what the program writes, so that the caller's arrays stay as they are;
//! 2. the program, with every array that the adjoint will read put on its tape before it is overwritten; each
//!    time loop is a [`Forward`](ebbtide_ir::Forward) sweep that a schedule drives;
//! 3. the outputs, copied; the seed of the cotangent;
//! 4. the program backwards: each statement's arrays are taken back from the tape, then its adjoint runs.
//!
//! What is recorded is decided array by array (see `needed`): for `s += 0.1 * tanh(s) * p` one array per step, for
//! a linear stencil nothing.
#![forbid(unsafe_code)]

mod analysis;
mod error;
mod generate;
mod gradient;
mod normalize;
mod optimize;
mod pipeline;
mod plan;
mod request;
mod rules;
mod writer;

pub use analysis::regions::Hosted;
pub use error::{Error, verify_generated};
pub use generate::tangent::Tangent;
pub use gradient::{CountedLoop, Gradient, Inner, InnerLoop, Pushes, pushes};
pub use pipeline::{Pass, STEPS, gradient, gradient_to_show, has_inner_loops, tangent, unverified_gradient};
pub use request::{DeadShadows, Mode, Optimisation, Request};
