//! A checkpoint: a [`Position`] (where in a program) and a [`State`] (what the rest of the program still needs).
//!
//! Yields, durable gradients and sweeps restore a state, set a position and run forward from there. They share these
//! types and one form in files: a [`Header`] in the form of `safetensors`, then the bytes of the arrays. Where files are
//! and when they are safe is the business of `snapshot`; what a position means is that of `ir`.
#![forbid(unsafe_code)]

mod buffer;
mod checkpoint;
mod element;
mod error;
mod header;
mod position;
mod state;

pub use buffer::{ALIGNMENT, Buffer, zeroed};
pub use checkpoint::Checkpoint;
pub use element::{Dtype, Element};
pub use error::Error;
pub use header::{ArrayInfo, FORMAT, Header, Kind, LARGEST_HEADER, Label};
pub use position::{Position, Step};
pub use state::{ArrayView, State};
