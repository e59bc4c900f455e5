//! Drives a schedule over anything that can step, save, restore and reverse.
//!
//! Someone with a step and its adjoint, written by hand or by a tool, implements [`Stepper`] and picks a
//! schedule; [`Sweep`] then computes the gradient in the memory that the schedule asks for.
//!
//! ```
//! use std::ops::Range;
//! use ebbtide_schedule::Revolve;
//! use ebbtide_sweep::{Stepper, Sweep};
//!
//! /// x ← sin(x), n times; the adjoint of one step multiplies by cos(x).
//! struct Sines { x: f64, tape: Vec<f64>, dx: f64 }
//!
//! impl Stepper for Sines {
//!     type State = [f64; 1];
//!     type Error = std::convert::Infallible;
//!
//!     fn advance(&mut self, steps: Range<u64>) -> Result<(), Self::Error> {
//!         for _ in steps { self.x = self.x.sin(); }
//!         Ok(())
//!     }
//!     fn record(&mut self, steps: Range<u64>) -> Result<(), Self::Error> {
//!         for _ in steps { self.tape.push(self.x); self.x = self.x.sin(); }
//!         Ok(())
//!     }
//!     fn turn(&mut self) -> Result<(), Self::Error> {
//!         self.dx = 1.0;
//!         Ok(())
//!     }
//!     fn reverse(&mut self, steps: Range<u64>) -> Result<(), Self::Error> {
//!         for _ in steps.rev() { self.dx *= self.tape.pop().expect("reverse follows record").cos(); }
//!         Ok(())
//!     }
//!     fn save(&self, state: &mut [f64; 1]) -> Result<(), Self::Error> {
//!         *state = [self.x];
//!         Ok(())
//!     }
//!     fn restore(&mut self, state: &[f64; 1]) -> Result<(), Self::Error> {
//!         self.x = state[0];
//!         Ok(())
//!     }
//! }
//!
//! let mut sines = Sines { x: 1.0, tape: Vec::new(), dx: 0.0 };
//! let counters = Sweep::new(Revolve::new(10, 3)?).run(&mut sines)?;
//!
//! assert!((sines.dx - 0.079293).abs() < 1e-6);
//! assert_eq!((counters.advanced, counters.recorded), (15, 10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate runs schedules. It does not decide what to keep (that is `schedule`), and never looks inside a
//! state (that is `snapshot`).
#![forbid(unsafe_code)]

mod cancel;
mod counters;
mod driver;
mod durable;
mod error;
mod look_ahead;
mod pace;
mod patchwork;
mod slots;
mod stepper;
mod sweep;

pub use cancel::Cancel;
pub use counters::{Counters, TierCounters};
pub use driver::{Driver, Illegal, Standing, part_of, steps_of};
pub use durable::{Durable, Run};
pub use error::Error;
pub use pace::Pace;
pub use stepper::Stepper;
pub use sweep::{Event, Progress, Start, Sweep};
