//! What a test, or a curious user, can read about a device.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what a device did since it was made.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) builds: AtomicU64,
    pub(crate) cache_hits: AtomicU64,
    pub(crate) launches: AtomicU64,
    pub(crate) waits: AtomicU64,
}

impl Counters {
    /// How often the compiler ran.
    pub fn builds(&self) -> u64 {
        self.builds.load(Ordering::Relaxed)
    }

    /// How often compiled code was found on disk.
    pub fn cache_hits(&self) -> u64 {
        self.cache_hits.load(Ordering::Relaxed)
    }

    /// How many kernels were launched. Each is one segment, or copies the arrays of one state; there are no other nodes.
    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// How often the host waited for the end of a launch.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }
}
