//! The contract, on the interpreter and on the CPU.

mod devices;
mod programs;
mod random;
mod workloads;
