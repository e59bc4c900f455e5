//! What every device shares: arrays, compile → launch → status.
//!
//! `runtime` never looks inside a task. The crates above it do not know which devices exist, except the facade, which picks one.

mod array;
mod device;
mod error;
mod gradient;
mod io;
mod launch;
mod memory;
mod size;
#[doc(hidden)]
pub mod testing;
mod trace;

pub use array::any_array::{AnyArray, AnyMut};
pub use array::arguments::Arg;
pub use array::foreign::return_contents;
pub use array::host_view::{HostView, HostViewMut};
#[cfg(feature = "ndarray")]
pub use array::nd::Ranked;
pub use array::{Array, Array0, Array1, Array2, Array3, Array4};
pub use device::counters::{Counters, Event, yielding_regions};
pub use device::frame::extents::{follows_from_arguments, from_arguments};
pub use device::frame::tape::{TapePiece, TapePlaces};
pub use device::frame::{Frame, View};
pub use device::interpreter::{checked, interpreter, interpreter_with};
pub use device::{Backend, Device, Executable, Start, partial_sums};
pub use ebbtide_checkpoint::Position;
pub use ebbtide_snapshot::fs::{Disks, FileSystem};
pub use ebbtide_sweep::Cancel;
pub use error::{Error, Result};
pub use gradient::CompiledGradient;
pub use gradient::plan::{Away, Budget, LoopPlan, Plan};
pub use gradient::ran::{Ran, Replay};
pub use gradient::run::hosted::{Host, OnYield};
pub use gradient::tiers::{Rate, Rates, Tiers};
pub use gradient::watch::{Observer, Progress};
pub use io::cache;
pub use io::saved::{load, save};
pub use launch::Compiled;
pub use launch::label::Label;
pub use launch::pending::Pending;
pub use launch::resident::{Resident, StridedBox, lend, take_lent};
pub use launch::status::{Next, Status};
pub use launch::yielded::{Shortage, Yielded};
pub use memory::buffer::Buffer;
pub use memory::device_memory::{ALIGNMENT, Carried, Memory, Piece};
pub use memory::element::{Element, Item};
pub use memory::meter::Meter;
pub use memory::shared::Shared;
pub use trace::warn;
