//! Tests of the program: printing, verifying, races.

mod fixtures;
mod passes;
mod verifier;
