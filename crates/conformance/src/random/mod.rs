//! Random programs of the whole language, and all that is asked of their derivatives.
//!
//! [`generate`](generate::generate) makes a [`Sketch`] of a seed, [`Case`] gives it sizes and arguments
//! and checks it, [`shrink`](shrink::shrink) makes what fails smaller, [`text`](text::text) prints it in the surface
//! language.

pub mod case;
pub mod generate;
pub mod indices;
pub mod lower;
pub mod shrink;
pub mod sketch;
pub mod text;

pub use case::{Case, Devices, Verdict};
pub use sketch::{Sizes, Sketch};
