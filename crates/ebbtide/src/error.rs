//! What can go wrong.

/// Any error of Ebbtide.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program could not be built, compiled, launched or run, or an array not be made.
    #[error(transparent)]
    Runtime(#[from] ebbtide_runtime::Error),
    /// `EBBTIDE_DEVICE` names a device that does not exist.
    #[error("there is no device `{name}`: EBBTIDE_DEVICE can be `cpu` or `interpreter`")]
    UnknownDevice {
        /// What it says.
        name: String,
    },
}

/// A result with [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
