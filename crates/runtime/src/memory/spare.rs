//! Memory that a launch leaves for the next one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::meter::Meter;
use crate::memory::pinned::Pinned;

/// Buffers that were used and will be used again: what a launch allocates, the next one finds.
#[derive(Debug, Default)]
pub struct Spare {
    by_size: Mutex<HashMap<usize, Vec<Buffer>>>,
    /// Pinned memory of the host: having it takes longer than filling it.
    pinned: Mutex<Vec<Pinned>>,
}

impl Spare {
    /// A buffer of this size, with anything in it.
    pub fn take(&self, bytes: usize, meter: &Arc<Meter>) -> Result<Buffer, Error> {
        let found = self.lock().get_mut(&bytes).and_then(Vec::pop);
        found.map_or_else(|| Buffer::zeroed(bytes, meter), Ok)
    }

    /// This many buffers of this size, with anything in them.
    pub fn take_many(&self, count: usize, bytes: usize, meter: &Arc<Meter>) -> Result<Vec<Buffer>, Error> {
        let mut taken = match self.lock().get_mut(&bytes) {
            // A tape takes what the last one gave as it is.
            Some(kept) if kept.len() <= count => std::mem::take(kept),
            Some(kept) => kept.split_off(kept.len() - count),
            None => Vec::new(),
        };
        while taken.len() < count {
            taken.push(Buffer::zeroed(bytes, meter)?);
        }
        Ok(taken)
    }

    /// Pinned memory of this size, with anything in it, if there is some.
    pub(crate) fn take_pinned(&self, bytes: usize) -> Option<Pinned> {
        let mut pinned = self.pinned();
        let at = pinned.iter().rposition(|place| place.len() == bytes)?;
        Some(pinned.swap_remove(at))
    }

    /// Keeps pinned memory for later; no copy is under way in it.
    pub(crate) fn give_pinned(&self, places: impl IntoIterator<Item = Pinned>) {
        self.pinned().extend(places);
    }

    /// The bytes that are kept, of pinned memory too.
    pub fn bytes(&self) -> u64 {
        let own: u64 = self.lock().iter().map(|(size, buffers)| (size * buffers.len()) as u64).sum();
        own + self.pinned().iter().map(|place| place.len() as u64).sum::<u64>()
    }

    /// Frees all that is kept.
    pub fn release(&self) {
        self.lock().clear();
        self.pinned().clear();
    }

    /// Keeps buffers for later.
    pub fn give(&self, buffers: impl IntoIterator<Item = Buffer>) {
        let mut by_size = self.lock();
        for buffer in buffers {
            by_size.entry(buffer.len()).or_default().push(buffer);
        }
    }

    /// Keeps buffers of one size for later.
    pub fn give_alike(&self, mut buffers: Vec<Buffer>) {
        let Some(bytes) = buffers.first().map(Buffer::len) else { return };
        let mut by_size = self.lock();
        let kept = by_size.entry(bytes).or_default();
        if kept.len() < buffers.len() {
            std::mem::swap(kept, &mut buffers);
        }
        kept.append(&mut buffers);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Vec<Buffer>>> {
        // Taking and giving cannot leave the table half changed.
        self.by_size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pinned(&self) -> MutexGuard<'_, Vec<Pinned>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
