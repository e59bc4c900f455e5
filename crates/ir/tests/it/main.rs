//! Tests of the program: printing, verifying, races.

mod fixtures;
mod verifier;
