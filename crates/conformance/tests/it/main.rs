//! The contract, on the interpreter and on the CPU.

mod devices;
mod hostile;
mod programs;
mod random;
mod workloads;
