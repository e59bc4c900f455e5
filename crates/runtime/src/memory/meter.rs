//! How many bytes are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::device_memory::Memory;

/// The memory of one device, and how many bytes of it buffers hold.
#[derive(Debug, Default)]
pub struct Meter {
    live: AtomicU64,
    peak: AtomicU64,
    /// The bytes that may be held less than all that can be counted, so that the default is no limit.
    withheld: AtomicU64,
    /// `None` where it is the host's.
    pub(crate) memory: Option<Arc<dyn Memory>>,
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

    /// The most bytes that may be held; all that there are where [`Meter::set_limit`] was not called.
    pub fn limit(&self) -> u64 {
        u64::MAX - self.withheld.load(Ordering::Relaxed)
    }

    /// The most bytes that may be held at one time: more are refused as if the device had no more. What is held already
    /// stays.
    pub fn set_limit(&self, bytes: u64) {
        self.withheld.store(u64::MAX - bytes, Ordering::Relaxed);
    }

    /// May this many bytes more be held?
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        self.live().saturating_add(bytes) <= self.limit()
    }

    pub(crate) fn add(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(live, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}
