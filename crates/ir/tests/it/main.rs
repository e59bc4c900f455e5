//! Tests of the program: printing, verifying, races.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cases;
mod fixtures;
mod hash;
mod passes;
mod poison;
mod races;
mod tapes;
mod text;
mod verifier;
