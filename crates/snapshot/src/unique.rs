use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A name that nobody else gives, in this process or in another, on this machine or on one that shares its disks.
///
/// Process numbers are no such name: every container counts its own.
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    // The keys of each are random.
    let [high, low] = [RandomState::new(), RandomState::new()]
        .map(|state| state.hash_one((count, time, std::process::id())));
    format!("{high:016x}{low:016x}")
}
