//! The program: what it is made of, what can be wrong with it, and its text, hash and places.

pub(crate) mod error;
pub(crate) mod function;
mod hash;
pub(crate) mod ids;
mod instance;
mod numbering;
pub(crate) mod op;
mod parse;
pub(crate) mod place;
mod print;
pub(crate) mod program;
pub(crate) mod types;

pub use error::*;
pub use function::Function;
pub use hash::ProgramHash;
pub use ids::*;
pub use numbering::Numbering;
pub use op::*;
pub use parse::{Outside, ParseError, parse, parse_with};
pub use place::*;
pub use program::*;
pub use types::{Literal, OVERFLOW, Type};
