//! Grids that are cut into parts, and programs that run on the parts together.
//!
//! A [`Grid`] cuts global extents into *parts*. The caller determines their number and borders; the number of processes does
//! not. A [`Team`] runs one function for each part, each on a thread of its own; inside, programs are compiled
//! and launched as usual, and their `exchange`, `exchange_add`, `all_sum`, `all_max` and `all_min` are done by all parts
//! together. Where there are several processes, a [`Wire`] connects them; `ebbtide-mpi` has one. What a run computes is defined
//! by the numbers of the parts alone, so it has the same bits wherever they run.
//!
//! ```
//! use ebbtide::prelude::*;
//! use ebbtide_grid::{Grid, Place1, Team};
//!
//! /// Heat on a periodic line: every part updates the elements that it owns.
//! #[program]
//! fn heat(u: &mut Array1<f64>, next: &mut Array1<f64>, at: &Place1, steps: usize, total: &mut Array0<f64>) {
//!     for _t in 0..steps {
//!         exchange(u);
//!         for i in par(at.first..at.first + at.count) {
//!             next[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
//!         }
//!         swap(u, next);
//!     }
//!     for i in par(at.first..at.first + at.count) {
//!         total[[]] += u[i];
//!     }
//!     all_sum(total);
//! }
//!
//! let grid = Grid::new(&[24])?.even(&[3])?.halo(1)?.periodic(&[true])?;
//! let device = Device::best()?;
//! let compiled = heat().compile(&device)?;
//! let totals = Team::new(&grid).run(|part| {
//!     let mut u = part.fill(&device, |at| if at[0] == 0 { 1.0 } else { 0.0 })?;
//!     let (mut next, mut total) = (part.zeros(&device)?, device.zeros([])?);
//!     compiled.launch((&mut u, &mut next, &part.place1()?, 10, &mut total))?;
//!     Ok(total.value())
//! })?;
//! assert!(totals.iter().all(|total| (total - 1.0).abs() < 1e-12));
//! # Ok::<(), ebbtide_grid::Error>(())
//! ```
#![forbid(unsafe_code)]

// Derived code names the facade.
extern crate ebbtide;

mod boxes;
mod error;
mod files;
mod grid;
mod halos;
mod meeting;
mod part;
mod place;
mod shots;
mod team;
mod wire;

pub use error::{Error, Result};
pub use grid::Grid;
pub use part::Part;
pub use place::{Place1, Place2, Place3};
pub use shots::{Shots, shots_of};
pub use team::Team;
pub use wire::{Alone, Channels, Wire};
