//! When to keep a state and when to recompute it.
//!
//! A schedule is an iterator of [`Action`]s; nothing else in Ebbtide decides what to keep. This crate knows
//! steps, slots and costs. It does not know arrays, bytes on disk, programs or devices.
#![forbid(unsafe_code)]

mod action;

pub use action::{Action, Slot, Tier};
