//! Files: compiled code, named arrays.

pub mod cache;
pub(crate) mod saved;
