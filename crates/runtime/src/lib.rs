//! What every device shares: arrays, compile → launch → status.
//!
//! `runtime` never looks inside a task. Nothing above it knows which devices exist.

mod any_array;
mod arguments;
mod array;
mod buffer;
mod by_type;
pub mod cache;
mod codec;
mod counters;
mod device;
mod durable;
mod error;
mod far;
mod foreign;
mod frame;
mod gradient;
mod hosted;
mod index;
mod interpreter;
mod label;
mod launch;
mod memory;
#[cfg(feature = "ndarray")]
mod nd;
mod parts;
mod pending;
mod plan;
mod planner;
mod saved;
mod script;
mod status;
mod stored;
mod sweeps;
mod tiers;
mod trace;
mod view;
mod watch;
mod yielded;

pub use any_array::{AnyArray, AnyMut};
pub use arguments::{Arg, from_arguments};
pub use array::{Array, Array0, Array1, Array2, Array3, Array4, Element};
pub use buffer::{ALIGNMENT, Buffer, Meter};
pub use counters::{Counters, Event, yielding_regions};
pub use device::{Backend, Device, Executable, Start, partial_sums};
pub use ebbtide_snapshot::fs::{Disks, FileSystem};
pub use ebbtide_sweep::Cancel;
pub use error::{Error, Result};
pub use foreign::return_contents;
pub use frame::{Frame, TapePlaces, View};
pub use gradient::CompiledGradient;
pub use hosted::{Host, OnYield};
pub use interpreter::{checked, interpreter, interpreter_with};
pub use label::Label;
pub use launch::Compiled;
pub use memory::{Carried, Memory, Piece};
#[cfg(feature = "ndarray")]
pub use nd::Ranked;
pub use pending::Pending;
pub use plan::{Away, Budget, LoopPlan, Plan};
pub use saved::{load, save};
pub use status::{Next, Status};
pub use sweeps::{Ran, Replay};
pub use tiers::{Rate, Rates, Tiers};
pub use trace::warn;
pub use view::{HostView, HostViewMut};
pub use watch::{Observer, Progress};
pub use yielded::Yielded;
