use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::{SnapshotReader, read_snapshot};
use crate::fs::FileSystem;
use crate::journal::FileNumber;
use crate::{Checkpoint, Error, Kind, Label};

/// Whose snapshots these are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) run: String,
    pub(crate) program: String,
}

/// The numbered snapshot files of one directory.
///
/// Names are made from numbers and never read from a file, so no file can name another outside the directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    owner: Owner,
    next: Arc<AtomicU64>,
}

impl Store {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, owner: Owner, next: FileNumber) -> Self {
        Self { fs, dir: dir.to_owned(), owner, next: Arc::new(AtomicU64::new(next.0)) }
    }

    pub(crate) fn next_number(&self) -> FileNumber {
        FileNumber(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn path(&self, file: FileNumber) -> PathBuf {
        self.dir.join(file_name(file))
    }

    pub(crate) fn label(&self, kind: Kind, step: u64, steps: Option<u64>) -> Label {
        Label { kind, step, steps, run: self.owner.run.clone(), program: self.owner.program.clone() }
    }

    /// Opens a file of this owner; one of another is an error.
    pub(crate) fn open(&self, file: FileNumber) -> Result<SnapshotReader, Error> {
        let reader = SnapshotReader::open(&*self.fs, &self.path(file))?;
        if (&reader.label().run, &reader.label().program) != (&self.owner.run, &self.owner.program) {
            return Err(reader.damaged("it belongs to another run"));
        }
        Ok(reader)
    }

    /// Reads a file that must hold exactly what `kind` and `step` say.
    pub(crate) fn read(
        &self,
        file: FileNumber,
        kind: Kind,
        step: u64,
        checkpoint: &mut Checkpoint,
    ) -> Result<(), Error> {
        let path = self.path(file);
        let found = read_snapshot(&*self.fs, &path, checkpoint)?;
        let (owner, held) = (&self.owner, (found.kind, found.step));
        if (&found.run, &found.program) == (&owner.run, &owner.program) && held == (kind, step) {
            return Ok(());
        }
        checkpoint.clear();
        let what = if (&found.run, &found.program) != (&owner.run, &owner.program) {
            "it belongs to another run".to_owned()
        } else {
            other_content(held, (kind, step))
        };
        Err(Error::damaged(&path, what))
    }
}

/// How to say that a file holds something else than it should.
pub(crate) fn other_content(found: (Kind, u64), expected: (Kind, u64)) -> String {
    let [is, should] = [found, expected].map(|(kind, step)| {
        let what = match kind {
            Kind::State => "a state",
            Kind::Adjoint => "an adjoint",
            Kind::Result => "the result",
        };
        format!("{what} of step {step}")
    });
    format!("it holds {is}, not {should}")
}

pub(crate) fn file_name(file: FileNumber) -> String {
    format!("{:08}.safetensors", file.0)
}

/// The number in the name of a snapshot file, finished or not.
pub(crate) fn number_in(name: &str) -> Option<FileNumber> {
    let stem = name.strip_suffix(".tmp").unwrap_or(name).strip_suffix(".safetensors")?;
    let number = FileNumber(stem.parse().ok()?);
    // Only the spelling that we write is ours.
    (file_name(number).strip_suffix(".safetensors") == Some(stem)).then_some(number)
}
