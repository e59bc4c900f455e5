//! What makes adjoints cheaper than the plain one.

pub(crate) mod local_sums;
pub(crate) mod outer_products;
pub(crate) mod scatter_to_sum;
pub(crate) mod sum_in_lanes;
