//! What every derivative starts from, and what every derivative program goes through in the end.

pub(crate) mod counted_loops;
pub(crate) mod custom_calls;
pub(crate) mod early;
pub(crate) mod number_apart;
pub(crate) mod periodic_neighbours;
pub(crate) mod prepare;
pub(crate) mod visits;
