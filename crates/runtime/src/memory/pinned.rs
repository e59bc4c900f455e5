//! Pinned memory of the host.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::Result;
use crate::memory::device_memory::Memory;
use crate::memory::meter::Meter;

/// Memory of the host that a device copies to and from while both continue.
#[derive(Debug)]
pub(crate) struct Pinned {
    memory: Arc<dyn Memory>,
    start: NonNull<u8>,
    bytes: usize,
    meter: Arc<Meter>,
}

// SAFETY (*Exclusive access*): it owns its memory alone.
unsafe impl Send for Pinned {}

impl Pinned {
    pub fn new(memory: &Arc<dyn Memory>, bytes: usize, meter: &Arc<Meter>) -> Result<Pinned> {
        let start = memory.pin(bytes)?;
        meter.add(bytes as u64);
        Ok(Pinned { memory: memory.clone(), start, bytes, meter: meter.clone() })
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes, when no copy is under way.
    ///
    /// # Safety
    ///
    /// *Exclusive access*: every copy to or from them has been waited for.
    pub unsafe fn bytes(&mut self) -> &mut [u8] {
        // SAFETY (*Bounds*, *Liveness*): `start` heads `bytes` initialised bytes that live as long as `self`; by the
        // caller's promise nothing else touches them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.meter.subtract(self.bytes as u64);
        // SAFETY (*Liveness*): it came from `pin` with as many bytes and is given back once, here.
        unsafe { self.memory.unpin(self.start, self.bytes) }
    }
}
