//! Ebbtide.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub use ebbtide_lang as __lang;
pub use ebbtide_lang::{items::{copy, fill, par, rand, select, swap}, Arrays, Array, Array0, Array1, Array2, Array3, Array4, Float, Label, Program, Name, Error, Result};
pub use ebbtide_macros::{Arrays, Label, checkpoint, func, program, relaxed, reverse};

/// Everything.
pub mod prelude {
    pub use crate::*;
}
