//! What can go wrong.

use std::fmt;

/// Any error of Ebbtide.
///
/// Its `Debug` form is its text: that is what `fn main() -> ebbtide::Result<()>` and `unwrap` print.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program could not be built, compiled, launched or run, or an array not be made.
    #[error(transparent)]
    Runtime(#[from] ebbtide_runtime::Error),
    /// `EBBTIDE_DEVICE` names a device that does not exist.
    #[error("there is no device `{name}`: EBBTIDE_DEVICE can be `cuda`, `cpu` or `interpreter`")]
    UnknownDevice {
        /// What it says.
        name: String,
    },
    /// The device that was asked for cannot be had on this machine.
    #[error("there is no {device} device here: {reason}")]
    NoDevice {
        /// The device.
        device: &'static str,
        /// What is missing.
        reason: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A result with [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
