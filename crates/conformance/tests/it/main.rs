//! The contract, on the interpreter and on the CPU.

mod devices;
mod model;
mod programs;
mod random;
mod stages;
mod traces;
mod workloads;
