//! What can go wrong: a caller's mistakes.

use std::fmt;

use crate::kernel::Kernel;

/// A request that cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MathError {
    /// A function was given another number of arguments than it takes.
    WrongArguments {
        /// What was called.
        kernel: Kernel,
        /// The number of floats given.
        floats: usize,
        /// The number of integers given.
        ints: usize,
    },
    /// A kernel was asked for in a format in which it does not exist.
    WrongFormat {
        /// What was called.
        kernel: Kernel,
    },
    /// C text was asked for in a shape that the dialect does not have.
    WrongShape {
        /// The number of lanes asked for.
        lanes: usize,
    },
}

impl fmt::Display for MathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MathError::WrongArguments { kernel, floats, ints } => write!(
                f,
                "{kernel} takes {} float and {} integer arguments, but {floats} and {ints} were given",
                kernel.floats(),
                kernel.ints()
            ),
            MathError::WrongFormat { kernel } => {
                write!(f, "{kernel} exists for f64 only; widen its arguments and round its result")
            }
            MathError::WrongShape { lanes } => write!(
                f,
                "no {lanes} lanes here: ask for 1, or in C for as many as make vectors of 16, 32 or 64 bytes"
            ),
        }
    }
}

impl std::error::Error for MathError {}
