//! The contract, on the interpreter and on the CPU.

mod cache;
mod devices;
mod gradients;
mod hostile;
mod programs;
mod random;
mod workloads;
