//! When to keep a state and when to recompute it.
//!
//! A schedule is an iterator of [`Action`]s; nothing else in Ebbtide decides what to keep. This crate knows
//! steps, slots and costs. It does not know arrays, bytes on disk, programs or devices.
//!
//! # The problem
//!
//! A loop of n steps is run forward and then reversed, last step first. To reverse a step one needs its
//! *tape*, and to make the tape one needs the *state* before the step. There is room for a few states
//! (*slots*; the initial state takes one of them, so `slots` counts it) and for the tape of a few
//! consecutive steps (a *block*). Everything else is run forward again.
//!
//! A driver carries out the actions in order: the contract is that of [`Schedule`], and [`Machine`] checks it.
//!
//! | schedule | for | keeps |
//! |---|---|---|
//! | [`StoreAll`] | loops whose whole tape fits | n tapes |
//! | [`Revolve`] | a known number of steps: the least recomputation | `slots` states |
//! | [`Periodic`] | two executions of each step at most | n / period states, a period of tape |
//! | [`Online`] | a number of steps that is known only at the end | `slots` states |
//! | [`Mixed`] | tapes that are not larger than states | `slots` states or tapes |
//! | [`Multistage`] | states in memory and on disk, with costs | `slots` states and those on disk |
//! | [`Rest`] | what is left after an interruption: [`replan`] | what survived |
//!
//! ```
//! use ebbtide_schedule::{Machine, Options, Revolve};
//!
//! // A thousand steps with ten states: each step is run 4.6 times.
//! let schedule = Revolve::new(1000, 10)?;
//! let totals = schedule.totals();
//! assert_eq!(totals.executions(), 4636);
//! assert_eq!(Machine::new(1000).run(schedule)?, totals);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod action;
mod any;
mod best;
mod binomial;
mod disk_plan;
mod disk_totals;
mod error;
mod machine;
mod mixed;
mod mixed_plan;
mod mixed_totals;
mod multistage;
mod online;
mod periodic;
mod placement;
mod pool;
mod rest;
mod retreat;
pub mod revolve;
mod scarce_table;
mod scarce_tree;
mod schedule;
mod store_all;
mod text;
mod totals;

pub use action::{Action, Slot, Tier};
pub use any::AnySchedule;
pub use best::{BestPlan, Beyond, Family, Holds, Plan, Problem, best_plan, cheapest_plan};
pub use error::{Error, MAX_STEPS};
pub use machine::{Illegal, Limits, Machine, Sizes};
pub use mixed::Mixed;
pub use multistage::{Disk, Multistage};
pub use online::Online;
pub use periodic::Periodic;
pub use rest::{Progress, Rest, replan};
pub use revolve::Revolve;
pub use schedule::{Method, Options, Schedule, Shape};
pub use store_all::StoreAll;
pub use totals::{Costs, Totals, Traffic};
