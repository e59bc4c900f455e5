//! What makes adjoints cheaper than the plain one.

pub(crate) mod local_sums;
pub(crate) mod scatter_to_sum;
