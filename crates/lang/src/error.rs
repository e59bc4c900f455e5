//! What can go wrong between a program and its results.

/// An error of a program: in building, compiling, launching or running it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program could not be built.
    #[error(transparent)]
    Build(#[from] ebbtide_ir::Error),
}

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
