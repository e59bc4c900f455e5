//! What makes adjoints cheaper than the plain one.

pub(crate) mod scatter_to_sum;
