use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::fs::{Disks, FileSystem};
use crate::journal::{FileNumber, Record};
use crate::prefetch::Prefetcher;
use crate::scratch::Scratch;
use crate::staging::Staging;
use crate::store::{Owner, Store};
use crate::writer::{Content, Durability, Job, Writer};
use crate::{Error, Kind, Place, Position, State};

/// Slots on disk, one `safetensors` file each.
///
/// States are written in the background while the run continues. A fixed number of staging buffers is all the memory
/// this takes: where the disk cannot keep up, [`begin`](Place::begin) waits for it. A state that is still in
/// a staging buffer is loaded from there.
pub struct Disk {
    store: Store,
    writer: Arc<Writer>,
    durability: Durability,
    slots: BTreeMap<usize, Held>,
    staging: Staging,
    begun: Option<(usize, usize)>,
    prefetcher: Option<Prefetcher>,
    /// The directory that goes in the end, for a disk that is not part of a run.
    scratch: Option<Scratch>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) file: FileNumber,
    pub(crate) step: u64,
    pub(crate) bytes: u64,
}

/// The number of staging buffers: one to save into, one being written, one being read ahead.
pub const STAGING_BUFFERS: usize = 3;

/// A disk has far fewer files than this; an index beyond it is a mistake.
const MOST_SLOTS: usize = 1 << 24;

impl Disk {
    /// Slots in a new directory below `parent`, which lasts as long as this value: for a sweep that needs more
    /// room than memory has, and no durability.
    pub fn scratch(parent: &Path) -> Result<Self, Error> {
        Self::scratch_on(Arc::new(Disks), parent)
    }

    /// With this number of staging buffers instead of [`STAGING_BUFFERS`], at least one; with one alone, nothing is written
    /// or read ahead.
    pub fn staging_buffers(mut self, count: usize) -> Self {
        self.staging = Staging::new(count.max(1));
        self
    }

    /// As [`scratch`](Self::scratch), on a file system of your own.
    pub fn scratch_on(fs: Arc<dyn FileSystem>, parent: &Path) -> Result<Self, Error> {
        let scratch = Scratch::make(Arc::clone(&fs), parent)?;
        // With an owner of its own no state of another launch passes for one of this, whoever put it here.
        let owner = Owner { run: scratch.name.clone(), program: String::new() };
        let store = Store::new(fs, &scratch.dir, owner, FileNumber(0));
        let writer = Arc::new(Writer::start(store.clone(), None, Durability::Scratch)?);
        let mut disk = Self::new(store, writer, Durability::Scratch, BTreeMap::new());
        disk.scratch = Some(scratch);
        Ok(disk)
    }

    pub(crate) fn new(
        store: Store,
        writer: Arc<Writer>,
        durability: Durability,
        slots: BTreeMap<usize, Held>,
    ) -> Self {
        let staging = Staging::new(STAGING_BUFFERS);
        Self { store, writer, durability, slots, staging, begun: None, prefetcher: None, scratch: None }
    }

    fn held_in(&self, slot: usize) -> Option<Held> {
        self.slots.get(&slot).copied()
    }

    /// A staging buffer to save into, as soon as there is one.
    fn buffer_to_save(&mut self) -> Result<usize, Error> {
        loop {
            // Looked at first, so that no progress is missed.
            let seen = self.writer.progress();
            self.absorb();
            if let Some(index) = self.staging.free() {
                return Ok(index);
            }
            self.writer.check()?;
            self.writer.wait_beyond(seen)?;
        }
    }

    /// A staging buffer to read into. States that could not be written may take all there are: they must not keep
    /// others from being read, so then there is one more.
    fn buffer_to_load(&mut self) -> Result<usize, Error> {
        loop {
            let seen = self.writer.progress();
            let idle = self.writer.is_idle();
            self.absorb();
            if let Some(index) = self.staging.free() {
                return Ok(index);
            }
            if idle {
                return Ok(self.staging.add());
            }
            self.writer.wait_beyond(seen)?;
        }
    }

    /// Takes what the reader has ready. A failed read is forgotten: the load will meet it and report it.
    fn absorb(&mut self) {
        if let Some(answer) = self.prefetcher.as_mut().and_then(Prefetcher::poll) {
            self.staging.give_back(answer.buffer, answer.result.is_ok().then_some(answer.file));
        }
    }

    fn record(&self, record: Record) -> Option<Record> {
        (self.durability == Durability::Durable).then_some(record)
    }
}

impl Place<State> for Disk {
    fn begin(&mut self, slot: usize) -> Result<&mut State, Error> {
        if slot >= MOST_SLOTS {
            return Err(Error::NoSuchSlot { slot, slots: MOST_SLOTS });
        }
        // What went wrong in the background is reported where the next state is to be kept: whoever only reads is
        // not concerned.
        self.writer.check()?;
        let index = self.buffer_to_save()?;
        self.begun = Some((slot, index));
        let checkpoint = self.staging.get_mut(index).ok_or(Error::EmptySlot { slot })?;
        checkpoint.clear();
        Ok(&mut checkpoint.state)
    }

    fn commit(&mut self, slot: usize, step: u64) -> Result<(), Error> {
        let index = match self.begun.take() {
            Some((begun, index)) if begun == slot => index,
            _ => return Err(Error::EmptySlot { slot }),
        };
        let file = self.store.next_number();
        self.staging.get_mut(index).ok_or(Error::EmptySlot { slot })?.position = Position::before_step(step);
        let checkpoint = self.staging.share(index, file);
        let held = Held { file, step, bytes: checkpoint.state.bytes() };
        // The journal line of the new state supersedes that of the old one: no line of its own is needed.
        let supersedes = self.slots.insert(slot, held).map(|old| old.file);
        if let Some(old) = supersedes {
            self.staging.forget(old);
            self.writer.give_up(old);
        }
        self.writer.submit(Job::Keep {
            file,
            content: Content::Checkpoint { label: self.store.label(Kind::State, step, None), checkpoint },
            record: self.record(Record::Stored { step, file, supersedes }),
            supersedes,
        });
        Ok(())
    }

    fn load(&mut self, slot: usize) -> Result<&State, Error> {
        let held = self.held_in(slot).ok_or(Error::EmptySlot { slot })?;
        if self.prefetcher.as_ref().and_then(Prefetcher::reading) == Some(held.file)
            && let Some(prefetcher) = &mut self.prefetcher
        {
            let answer = prefetcher.wait()?;
            self.staging.give_back(answer.buffer, answer.result.is_ok().then_some(held.file));
            answer.result?;
        }
        let index = match self.staging.find(held.file) {
            Some(index) => index,
            None => {
                let index = self.buffer_to_load()?;
                let checkpoint = self.staging.get_mut(index).ok_or(Error::EmptySlot { slot })?;
                self.store.read(held.file, Kind::State, held.step, checkpoint)?;
                self.staging.set_holds(index, held.file);
                index
            }
        };
        Ok(&self.staging.get(index).state)
    }

    fn discard(&mut self, slot: usize) -> Result<(), Error> {
        if let Some(held) = self.slots.remove(&slot) {
            self.staging.forget(held.file);
            self.writer.give_up(held.file);
            let record = self.record(Record::Dropped { file: held.file });
            self.writer.submit(Job::Remove { file: held.file, record });
        }
        Ok(())
    }

    fn step(&self, slot: usize) -> Option<u64> {
        self.held_in(slot).map(|held| held.step)
    }

    fn held(&self) -> Vec<(usize, u64)> {
        self.slots.iter().map(|(slot, held)| (*slot, held.step)).collect()
    }

    fn bytes(&self) -> u64 {
        self.slots.values().map(|held| held.bytes).sum()
    }

    fn prefetch(&mut self, slot: usize) {
        self.absorb();
        let Some(held) = self.held_in(slot) else { return };
        if self.staging.find(held.file).is_some()
            || self.prefetcher.as_ref().is_some_and(|prefetcher| prefetcher.reading().is_some())
        {
            return;
        }
        // One buffer must stay for the next save. A hint is not worth waiting for.
        if self.staging.free_count() < 2 {
            return;
        }
        if self.prefetcher.is_none() {
            self.prefetcher = Prefetcher::start(self.store.clone()).ok();
        }
        if let (Some(prefetcher), Some(buffer)) = (&mut self.prefetcher, self.staging.lend()) {
            prefetcher.request(held.file, held.step, buffer);
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.writer.flush()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.scratch.is_some() {
            // Best effort: a scratch directory that stays harms nobody.
            for slot in self.slots.keys().copied().collect::<Vec<_>>() {
                let _ = self.discard(slot);
            }
            // What failed before is reported by the first of these, and the removals are waited for by the second.
            let _ = self.writer.flush();
            let _ = self.writer.flush();
            self.prefetcher = None;
            // Nobody writes any more: what failed writes have left goes with the folder.
            self.scratch = None;
        }
    }
}
