//! The claims that the schedules make, as tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::needless_range_loop, reason = "tables are indexed by what their formulas call n and s")]

mod best;
mod legality;
mod mixed;
mod multistage;
mod revolve;
mod support;
mod text;
