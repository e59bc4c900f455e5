//! The contract, on the interpreter and on the CPU.

mod devices;
mod gradients;
mod library;
mod programs;
mod random;
mod workloads;
