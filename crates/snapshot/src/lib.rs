//! Where states live.
//!
//! A [`Checkpoint`] is a [`Position`] (where in a program) and a [`State`] (what the rest of the program still
//! needs). This crate keeps states in [`Place`]s: in [`Memory`], on [`Disk`], and in the directory of a durable
//! run. It knows bytes and files. It does not know when to keep a state (that is `schedule`), nor how to
//! run a step (that is `sweep`).
#![forbid(unsafe_code)]

mod adjoints;
mod disk;
mod error;
mod file;
pub mod fs;
mod journal;
mod manifest;
mod memory;
mod place;
mod prefetch;
pub mod prune;
mod recovery;
mod room;
mod run_dir;
mod scratch;
mod staging;
mod store;
mod survey;
mod unique;
mod writer;

pub use adjoints::{Adjoints, Outline, Patience, Reached, Superseding};
pub use ebbtide_checkpoint::{
    ArrayInfo, ArrayView, Checkpoint, Dtype, Element, Kind, Label, Position, State, Step,
};

pub use disk::{Disk, STAGING_BUFFERS};
pub use error::Error;
pub use file::{SnapshotReader, SnapshotWriter, read_snapshot, write_snapshot};
pub use journal::{FileNumber, History, Record, read_journal};
pub use manifest::{Budget, Identity, Manifest};
pub use memory::Memory;
pub use place::{Place, Saved};
pub use recovery::Recovered;
pub use room::{free_memory, memory_found};
pub use run_dir::{FoundRun, RunDir};
pub use survey::{Adjoint, Survey};
