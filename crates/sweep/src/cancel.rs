use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A way to stop a sweep from outside. Clones share one switch.
///
/// A cancelled sweep stops between two actions, keeps all it has, and can be run again.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the sweep to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the wish back, so that the sweep may go on.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
