//! Memory that arrays live in: aligned, zeroed, counted.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Every buffer starts at a multiple of this many bytes.
pub const ALIGNMENT: usize = 64;

/// Counts the bytes that the buffers of one device hold.
#[derive(Debug, Default)]
pub struct Meter {
    live: AtomicU64,
    peak: AtomicU64,
}

impl Meter {
    /// The bytes held now.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// The most bytes held at one time since the last [`Meter::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Forgets the peak: from now on it is counted anew.
    pub fn reset_peak(&self) {
        self.peak.store(self.live(), Ordering::Relaxed);
    }

    fn add(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(live, Ordering::Relaxed);
    }
}

/// A zeroed piece of memory, aligned to [`ALIGNMENT`].
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    meter: Arc<Meter>,
}

// SAFETY: a buffer owns its memory alone; shared access to the bytes goes through `&self`, exclusive access
// through `&mut self`, as for a `Vec<u8>`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A zeroed buffer, counted by `meter`.
    pub fn zeroed(bytes: usize, meter: &Arc<Meter>) -> Result<Buffer, Error> {
        let too_large = || Error::OutOfMemory { bytes };
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| too_large())?;
        // SAFETY: the layout has a size of at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(too_large)?;
        meter.add(bytes as u64);
        Ok(Buffer { start, bytes, meter: meter.clone() })
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY (*Bounds*, *Liveness*): `start` heads an allocation of at least `bytes` initialised bytes that
        // lives as long as `self`; *Exclusive access*: writers need `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// The address of the first byte, for compiled code.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// Buffers that were used and will be used again: what a launch allocates, the next one finds.
#[derive(Debug, Default)]
pub struct Spare {
    by_size: Mutex<HashMap<usize, Vec<Buffer>>>,
}

impl Spare {
    /// A buffer of this size, with anything in it.
    pub fn take(&self, bytes: usize, meter: &Arc<Meter>) -> Result<Buffer, Error> {
        let found = self.lock().get_mut(&bytes).and_then(Vec::pop);
        found.map_or_else(|| Buffer::zeroed(bytes, meter), Ok)
    }

    /// The bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.lock().iter().map(|(size, buffers)| (size * buffers.len()) as u64).sum()
    }

    /// Frees all that is kept.
    pub fn release(&self) {
        self.lock().clear();
    }

    /// Keeps buffers for later.
    pub fn give(&self, buffers: impl IntoIterator<Item = Buffer>) {
        let mut by_size = self.lock();
        for buffer in buffers {
            by_size.entry(buffer.len()).or_default().push(buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Vec<Buffer>>> {
        // Taking and giving cannot leave the table half changed.
        self.by_size.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.meter.live.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        if let Ok(layout) = Layout::from_size_align(self.bytes.max(1), ALIGNMENT) {
            // SAFETY: `start` came from `alloc_zeroed` with this very layout and is freed once, here.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}
