//! A kernel that the host looks at while it runs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ebbtide_runtime::{Cancel, Result};

use super::{Gpu, NOT_READY};
use crate::sys::Address;

/// So many looks at a stream follow each other at once, which take about a millisecond; then the host sleeps between them.
const SHORT_WAIT: u32 = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);
/// At each so many looks it asks how far the kernel is.
const LOOKS_AT_PASSES: u32 = 200;

impl Gpu {
    /// Waits for all that was asked for; meanwhile brings the host what a kernel says at `done`, and tells the kernel through
    /// the word `stop` when it is to end.
    pub fn watch(&self, cancel: &Cancel, stop: Address, passes: &AtomicI64, done: Address) -> Result<()> {
        self.enter()?;
        for look in 1u32.. {
            // SAFETY: the stream lives as long as the process.
            match unsafe { (self.driver.cuStreamQuery)(self.stream) } {
                NOT_READY if cancel.is_cancelled() => {
                    // Again and again: what was said before the launch took its tables is lost.
                    self.tell(stop)?;
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                NOT_READY if look < SHORT_WAIT => std::hint::spin_loop(),
                NOT_READY => {
                    if look.is_multiple_of(LOOKS_AT_PASSES) {
                        passes.store(self.ask(done)?, Ordering::Relaxed);
                    }
                    std::thread::sleep(BETWEEN_LOOKS);
                }
                code => return self.check(code, "a kernel or a copy failed"),
            }
        }
        self.wait()
    }

    /// Sets a word of the GPU's memory while a kernel looks at it.
    fn tell(&self, word: Address) -> Result<()> {
        let set = 1i32;
        // SAFETY (*Bounds*, *Liveness*): the word belongs to tables that the caller holds, and the copy has ended when this
        // returns, so that it meets no later launch.
        let code =
            unsafe { (self.driver.cuMemcpyHtoDAsync_v2)(word, (&raw const set).cast(), 4, self.wishes) };
        self.check(code, "the stop word could not be set")?;
        self.wished()
    }

    /// What a word of the GPU's memory holds while a kernel writes it.
    fn ask(&self, word: Address) -> Result<i64> {
        let mut found = 0i64;
        // SAFETY (*Bounds*, *Liveness*): as above.
        let code =
            unsafe { (self.driver.cuMemcpyDtoHAsync_v2)((&raw mut found).cast(), word, 8, self.wishes) };
        self.check(code, "the number of passes could not be had")?;
        self.wished()?;
        Ok(found)
    }

    fn wished(&self) -> Result<()> {
        // SAFETY: the stream lives as long as the process.
        let code = unsafe { (self.driver.cuStreamSynchronize)(self.wishes) };
        self.check(code, "a word could not be copied")
    }
}
