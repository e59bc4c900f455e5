//! Transforms: each is a rule of what may change places, as data, that the printers follow.

pub(crate) mod sink_stores;
