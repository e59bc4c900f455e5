//! The contract of the tape: one test or more per line of the conformance list, named after it.

// Helpers of tests are tests, which clippy does not see; indices are mathematics here.
#![allow(clippy::unwrap_used, clippy::needless_range_loop)]

mod allocations;
mod arrays;
mod chains;
mod contract;
mod errors;
mod floats;
mod forward;
mod graphs;
mod higher_order;
mod hvp;
mod outputs;
mod plans;
mod predecessor;
mod rules;
mod support;
