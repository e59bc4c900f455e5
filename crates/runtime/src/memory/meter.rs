//! How many bytes are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::device_memory::Memory;

/// The memory of one device, and how many bytes of it buffers hold.
#[derive(Debug, Default)]
pub struct Meter {
    live: AtomicU64,
    peak: AtomicU64,
    /// `None` where it is the host's.
    pub(super) memory: Option<Arc<dyn Memory>>,
}

impl Meter {
    /// Of a device with memory of its own.
    pub(crate) fn of(memory: Option<Arc<dyn Memory>>) -> Meter {
        Meter { memory, ..Meter::default() }
    }

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

    pub(crate) fn add(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(live, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}
