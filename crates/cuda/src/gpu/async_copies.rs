//! Copies beside the computation.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;

use ebbtide_runtime::{Carried, Piece, Result};

use super::{Gpu, NOT_READY, describe, failure};
use crate::sys::{Driver, Handle};

/// An event that does not measure time.
const NO_TIMING: u32 = 2;

impl Gpu {
    /// An event after all that a stream was asked for.
    fn event(&self, stream: Handle) -> Result<Event> {
        self.enter()?;
        let mut handle = null_mut();
        // SAFETY (*Driver's contract*): the driver writes a handle; both streams live as long as the process.
        unsafe {
            self.check((self.driver.cuEventCreate)(&mut handle, NO_TIMING), "no event could be made")?;
            let event = Event { handle, driver: self.driver, context: self.context };
            self.check((self.driver.cuEventRecord)(handle, stream), "an event could not be recorded")?;
            Ok(event)
        }
    }

    /// Lets a stream wait for an event; the host continues.
    fn hold(&self, stream: Handle, event: &Event) -> Result<()> {
        self.enter()?;
        // SAFETY (*Liveness*): the event and the stream are there.
        let code = unsafe { (self.driver.cuStreamWaitEvent)(stream, event.handle, 0) };
        self.check(code, "a stream could not be told to wait")
    }

    /// Copies beside the computation, after all that was asked for.
    pub(super) fn carry(&self, pieces: &[Piece], one: impl Fn(&Piece) -> c_int) -> Result<Arc<dyn Carried>> {
        self.hold(self.copies, &self.event(self.stream)?)?;
        for piece in pieces.iter().filter(|(_, _, bytes)| *bytes > 0) {
            if let Err(error) =
                self.check(one(piece), "a state could not be copied between the GPU and the host")
            {
                // The pieces before it are on their way, from and to memory that the caller may give back now.
                // SAFETY (*Liveness*): the stream lives as long as the process.
                unsafe { (self.driver.cuStreamSynchronize)(self.copies) };
                return Err(error);
            }
        }
        let event = self.event(self.copies)?;
        Ok(Arc::new(Copying { event, stream: self.stream }))
    }
}

/// A moment in a stream.
struct Event {
    handle: Handle,
    driver: &'static Driver,
    context: Handle,
}

// SAFETY (*Driver's contract*): handles of the driver may be used from any thread that has set the context.
unsafe impl Send for Event {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Sync for Event {}

impl Event {
    /// Asks the driver something about the event.
    fn ask(&self, question: unsafe extern "C" fn(Handle) -> c_int) -> c_int {
        // SAFETY (*Liveness*): the context is retained as long as the process lives, the event as long as `self`.
        unsafe {
            match (self.driver.cuCtxSetCurrent)(self.context) {
                0 => question(self.handle),
                code => code,
            }
        }
    }

    fn fine(&self, code: c_int) -> Result<()> {
        match code {
            0 => Ok(()),
            code => Err(failure(format!("a kernel or a copy failed: {}", describe(self.driver, code)))),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // The driver keeps what a stream still waits for.
        self.ask(self.driver.cuEventDestroy_v2);
    }
}

/// A copy on the stream of copies.
struct Copying {
    event: Event,
    /// The stream of everything else.
    stream: Handle,
}

// SAFETY (*Driver's contract*): as for `Event`.
unsafe impl Send for Copying {}
// SAFETY (*Driver's contract*): as above.
unsafe impl Sync for Copying {}

// SAFETY (*Liveness*): the event was recorded behind the copy on its stream.
unsafe impl Carried for Copying {
    fn is_over(&self) -> Result<bool> {
        match self.event.ask(self.event.driver.cuEventQuery) {
            NOT_READY => Ok(false),
            code => self.event.fine(code).map(|()| true),
        }
    }

    fn wait(&self) -> Result<()> {
        self.event.fine(self.event.ask(self.event.driver.cuEventSynchronize))
    }

    fn hold(&self) -> Result<()> {
        let Event { driver, context, handle } = self.event;
        // SAFETY (*Liveness*): the context is retained as long as the process lives; so are its streams.
        let code = unsafe {
            match (driver.cuCtxSetCurrent)(context) {
                0 => (driver.cuStreamWaitEvent)(self.stream, handle, 0),
                code => code,
            }
        };
        self.event.fine(code)
    }
}
