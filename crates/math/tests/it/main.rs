//! The tests of the crate, one module per claim.

mod reference;
mod same_bits;
mod samples;
