use std::path::PathBuf;

/// What can go wrong with grids and their parts.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The grid cannot be what was asked for.
    Grid(String),
    /// An array does not belong to the grid, or a part was asked for what it does not have.
    Part(String),
    /// What connects the processes failed.
    Wire(String),
    /// Saved parts are missing, damaged, or of another grid.
    Files {
        /// Where they are.
        path: PathBuf,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A program or an array failed.
    Engine(ebbtide::Error),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Grid(message) | Error::Part(message) => f.write_str(message),
            Error::Wire(message) => write!(f, "the processes of the run lost each other: {message}"),
            Error::Files { path, message } => write!(f, "{}: {message}", path.display()),
            Error::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<ebbtide::Error> for Error {
    fn from(error: ebbtide::Error) -> Error {
        Error::Engine(error)
    }
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
