//! The `ebbtide` command, run as its users run it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod book;
mod demo;
mod doctor;
mod hostile;
mod plan;
mod runs;
mod trace;

#[path = "../../../snapshot/tests/support/kill.rs"]
mod kill;
