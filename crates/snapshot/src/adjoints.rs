use std::collections::VecDeque;
use std::sync::Arc;

use ebbtide_checkpoint::Header;

use crate::file::{SnapshotWriter, temporary};
use crate::journal::{FileNumber, Record};
use crate::store::Store;
use crate::survey::Adjoint;
use crate::writer::{Content, Job, Writer};
use crate::{ArrayInfo, Checkpoint, Error, Kind, Label, Position, State};

/// How many adjoints stay on disk: the latest, and one to fall back on.
const GENERATIONS: usize = 2;

/// The adjoints of a run on disk: the frontier of its reverse sweep.
///
/// An adjoint is either put together in memory and written in the background ([`begin`](Self::begin),
/// [`commit`](Self::commit)), or written from where it lies ([`stream`](Self::stream)): that takes no memory in proportion
/// to it, and only syncing is done in the background.
pub struct Adjoints {
    store: Store,
    writer: Arc<Writer>,
    buffer: Arc<Checkpoint>,
    /// The adjoints on disk, the one to go first in front.
    kept: VecDeque<FileNumber>,
    /// What a complete gradient supersedes, and [`release`](Self::release) removes.
    superseded: Vec<FileNumber>,
    superseding: Superseding,
}

/// When a complete gradient makes the adjoints before it go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Superseding {
    /// At once.
    #[default]
    AtOnce,
    /// When [`Adjoints::release`] is called: other runs may not be complete yet.
    WhenReleased,
}

/// What is to be done with an adjoint that comes while the one before is still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It waits.
    Wait,
    /// It is not written: the next one will do.
    Skip,
}

/// What a checkpoint that is written from where it lies consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its position.
    pub position: Position,
    /// Its arrays, in the order in which their bytes are given.
    pub arrays: Vec<ArrayInfo>,
}

/// How far a run is when its adjoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Everything down to this step is reversed.
    Step(u64),
    /// The gradient is complete.
    End,
}

impl Adjoints {
    pub(crate) fn new(store: Store, writer: Arc<Writer>, kept: VecDeque<FileNumber>) -> Self {
        let superseding = Superseding::default();
        Self { store, writer, buffer: Arc::default(), kept, superseded: Vec::new(), superseding }
    }

    /// Says when a complete gradient makes the adjoints before it go.
    pub fn supersede(&mut self, superseding: Superseding) {
        self.superseding = superseding;
    }

    /// Makes this one the last to go, whatever came after it: it is the one that the run continues from.
    pub fn continue_from(&mut self, adjoint: &Adjoint) {
        if let Some(at) = self.kept.iter().position(|file| *file == adjoint.file) {
            self.kept.remove(at);
            self.kept.push_back(adjoint.file);
        }
    }

    /// Removes what a complete gradient has superseded.
    pub fn release(&mut self) -> Result<(), Error> {
        for old in std::mem::take(&mut self.superseded) {
            self.writer.submit(Job::Remove { file: old, record: None });
        }
        self.writer.flush()
    }

    /// A state to save the adjoint into; `None` while the one before is still being written.
    pub fn begin(&mut self) -> Result<Option<&mut State>, Error> {
        self.writer.check()?;
        let Some(checkpoint) = Arc::get_mut(&mut self.buffer) else { return Ok(None) };
        checkpoint.clear();
        Ok(Some(&mut checkpoint.state))
    }

    /// As [`begin`](Self::begin), but waits.
    pub fn begin_waiting(&mut self) -> Result<&mut State, Error> {
        loop {
            let seen = self.writer.progress();
            self.writer.check()?;
            if Arc::get_mut(&mut self.buffer).is_some() {
                break;
            }
            self.writer.wait_beyond(seen)?;
        }
        self.begin()?.ok_or(Error::WorkerDied { doing: "writes snapshots" })
    }

    /// Keeps what was saved: of `steps` steps everything down to `step` is reversed.
    pub fn commit(&mut self, step: u64, steps: u64) {
        let file = self.store.next_number();
        let label = self.store.label(Kind::Adjoint, step, Some(steps));
        let content = self.saved(label);
        self.keep(file, content, step, steps);
    }

    /// Keeps what was saved as the complete gradient and returns when it is durable.
    pub fn finish(&mut self, steps: u64) -> Result<(), Error> {
        let file = self.store.next_number();
        let label = self.store.label(Kind::Result, 0, Some(steps));
        let content = self.saved(label);
        self.keep_result(file, content, steps)
    }

    /// What was saved, at the position of its step.
    fn saved(&mut self, label: Label) -> Content {
        // It is shared with the writer only after this.
        if let Some(checkpoint) = Arc::get_mut(&mut self.buffer) {
            checkpoint.position = Position::before_step(label.step);
        }
        Content::Checkpoint { label, checkpoint: Arc::clone(&self.buffer) }
    }

    /// Writes an adjoint whose bytes `fill` gives in order, through a buffer of so many bytes. Returns
    /// whether it was written; a complete gradient always is, and is durable then.
    pub fn stream<E: From<Error>>(
        &mut self,
        reached: Reached,
        steps: u64,
        outline: Outline,
        buffer: usize,
        patience: Patience,
        fill: impl FnOnce(&mut SnapshotWriter) -> Result<(), E>,
    ) -> Result<bool, E> {
        self.writer.check()?;
        while !self.writer.is_idle() {
            if patience == Patience::Skip && reached != Reached::End {
                return Ok(false);
            }
            let seen = self.writer.progress();
            if !self.writer.is_idle() {
                self.writer.wait_beyond(seen)?;
            }
            self.writer.check()?;
        }
        let (kind, step) = match reached {
            Reached::Step(step) => (Kind::Adjoint, step),
            Reached::End => (Kind::Result, 0),
        };
        let file = self.store.next_number();
        let label = self.store.label(kind, step, Some(steps));
        let path = temporary(&self.store.path(file));
        let header = Header { label, position: outline.position, arrays: outline.arrays };
        let written = SnapshotWriter::create(&*self.store.fs, &path, &header, buffer)
            .map_err(E::from)
            .and_then(|mut writer| fill(&mut writer).and_then(|()| writer.finish().map_err(E::from)));
        let content = match written {
            Ok(output) => Content::Written(output),
            Err(error) => {
                let _ = self.store.fs.remove(&path);
                return Err(error);
            }
        };
        match reached {
            Reached::Step(step) => self.keep(file, content, step, steps),
            Reached::End => self.keep_result(file, content, steps)?,
        }
        Ok(true)
    }

    fn keep(&mut self, file: FileNumber, content: Content, step: u64, steps: u64) {
        // More than two were found where files had been adopted.
        while self.kept.len() > GENERATIONS {
            if let Some(old) = self.kept.pop_front() {
                self.writer.submit(Job::Remove { file: old, record: Some(Record::Dropped { file: old }) });
            }
        }
        let supersedes = if self.kept.len() < GENERATIONS { None } else { self.kept.pop_front() };
        let record = Some(Record::Reversed { step, steps, file, supersedes });
        self.writer.submit(Job::Keep { file, content, record, supersedes });
        self.kept.push_back(file);
    }

    fn keep_result(&mut self, file: FileNumber, content: Content, steps: u64) -> Result<(), Error> {
        let record = Some(Record::Finished { steps, file });
        self.writer.submit(Job::Keep { file, content, record, supersedes: None });
        self.writer.flush()?;
        self.superseded.extend(std::mem::take(&mut self.kept));
        self.kept.push_back(file);
        match self.superseding {
            Superseding::AtOnce => self.release(),
            Superseding::WhenReleased => Ok(()),
        }
    }
}
