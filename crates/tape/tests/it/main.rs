//! The contract of the tape: one test or more per line of the conformance list, named after it.

mod arrays;
mod chains;
mod contract;
mod errors;
mod graphs;
mod hvp;
mod outputs;
mod rules;
mod support;
