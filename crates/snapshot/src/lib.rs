//! Where states live.
//!
//! A checkpoint is a [`Position`] (where in a program) and a [`State`] (what the rest of the program still
//! needs). This crate keeps states in [`Place`]s: in [`Memory`], on [`Disk`], and in the directory of a durable
//! run. It knows arrays, bytes and files. It does not know when to keep a state (that is `schedule`), nor how to
//! run a step (that is `sweep`).
#![forbid(unsafe_code)]

mod adjoints;
mod buffer;
mod disk;
mod element;
mod error;
mod file;
pub mod fs;
mod header;
mod journal;
mod manifest;
mod memory;
mod place;
mod position;
mod prefetch;
pub mod prune;
mod recovery;
mod room;
mod run_dir;
mod scratch;
mod staging;
mod state;
mod store;
mod survey;
mod unique;
mod writer;

pub use adjoints::{Adjoints, Patience, Reached, Superseding};
pub use disk::{Disk, STAGING_BUFFERS};
pub use element::{Dtype, Element};
pub use error::Error;
pub use file::{SnapshotReader, SnapshotWriter, read_snapshot, write_snapshot};
pub use header::{ArrayInfo, Kind, Label};
pub use journal::{FileNumber, History, Record, read_journal};
pub use manifest::{Budget, Identity, Manifest};
pub use memory::Memory;
pub use place::{Place, Saved};
pub use position::{Position, Step};
pub use recovery::Recovered;
pub use room::{free_memory, memory_found};
pub use run_dir::{FoundRun, RunDir};
pub use state::{ArrayView, State};
pub use survey::{Adjoint, Survey};
