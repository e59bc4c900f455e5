use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A way to stop a run from outside: from another thread, a signal handler, a button. Clones share one switch.
///
/// A cancelled sweep stops between two actions, keeps all it has, and can be run again. Launches of compiled programs
/// and their gradients take the same switch.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks what has this switch to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Takes the wish back, so that what has this switch may run again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether a stop was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The switch itself, for code that can only look at memory.
    pub fn word(&self) -> &AtomicBool {
        &self.0
    }
}
