//! The `ebbtide` command, run as its users run it.

mod plan;
