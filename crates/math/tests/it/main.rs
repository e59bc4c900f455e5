//! The tests of the crate, one module per claim.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod accuracy;
mod random;
mod reference;
mod same_bits;
mod samples;
mod semantics;
