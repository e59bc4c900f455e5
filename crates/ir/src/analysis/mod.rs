//! What can be known of a program without running it.

pub(crate) mod affine;
pub(crate) mod alike;
pub mod dataflow;
pub(crate) mod dependence;
pub(crate) mod entry;
pub mod leaf;
