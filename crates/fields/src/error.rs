//! What can go wrong between arrays and files.

use std::path::{Path, PathBuf};

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system could not do it.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// What the file holds cannot become the array that was asked for, or an array cannot go into the file.
    #[error("{}: {message}", path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// What does not fit, and what to do.
        message: String,
    },
    /// The device had no room for the array.
    #[error(transparent)]
    Array(#[from] ebbtide_runtime::Error),
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Io { path, source }
}

pub(crate) fn misfit(path: &Path, message: impl ToString) -> Error {
    Error::Misfit { path: path.to_path_buf(), message: message.to_string() }
}
