//! The contract, on the interpreter and on the CPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
mod devices;
mod gradients;
mod hostile;
mod introspection;
mod library;
mod loops;
mod model;
mod programs;
mod random;
mod stages;
mod traces;
mod workloads;
mod yields;
