//! Devices for tests: `_own_memory` plays a GPU on machines without one (the interpreter, over memory that is the host's and is
//! handled as a device's); `_panicking` panics, as a flaw of a device would.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::Arc;

use ebbtide_ir::{Block, Facts, Outcome, Program};
use ebbtide_runtime::{
    ALIGNMENT, Backend, Device, Error, Executable, Frame, Memory, Result, Shared, Start, interpreter,
};

/// DLPack's number for devices of extensions.
const EXTENSION: i32 = 12;

/// What producers are told to order their work by.
const STREAM: u64 = 4711;

#[derive(Debug)]
struct OwnMemory;

fn layout(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| Error::OutOfMemory { bytes })
}

// SAFETY (*Allocation*, *Copies*, *Ends*): host memory of the size asked for, zeroed, copied at once.
unsafe impl Memory for OwnMemory {
    fn shared(&self) -> Option<Shared> {
        Some(Shared { kind: EXTENSION, ordinal: 0, stream: STREAM })
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<u8>> {
        // SAFETY (*Allocation*): the layout has a size of at least one byte.
        NonNull::new(unsafe { alloc_zeroed(layout(bytes)?) }).ok_or(Error::OutOfMemory { bytes })
    }

    unsafe fn free(&self, address: NonNull<u8>, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY (*Liveness*): it came from `allocate` with this layout, by the caller's promise.
            unsafe { dealloc(address.as_ptr(), layout) }
        }
    }

    unsafe fn copy(&self, from: *const u8, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        Ok(())
    }

    unsafe fn upload(&self, from: &[u8], to: *mut u8) -> Result<()> {
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: *const u8, to: &mut [u8]) -> Result<()> {
        // SAFETY (*Bounds*): by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }
}

struct DeviceWithOwnMemory {
    memory: Arc<OwnMemory>,
    inner: Device,
}

// SAFETY (*Faithful code*): the interpreter's; (*One memory*): one for all calls, which the interpreter can touch.
unsafe impl Backend for DeviceWithOwnMemory {
    fn name(&self) -> &str {
        "own memory"
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        Some(self.memory.clone())
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        self.inner.backend().compile(program, facts, segments)
    }
}

/// The device.
pub fn own_memory() -> Device {
    Device::new(Arc::new(DeviceWithOwnMemory { memory: Arc::new(OwnMemory), inner: interpreter() }))
}

struct Panicking;

// SAFETY (*Faithful code*): what it compiles computes nothing; (*One memory*): always the host's.
unsafe impl Backend for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        _facts: &Arc<Facts>,
        _segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        // One kind of flaw for each half of what a device does.
        if program.name.starts_with("uncompilable") {
            panic!("a panicking device compiles nothing");
        }
        Ok(Arc::new(Panicking))
    }
}

// SAFETY (*Bounds*, *Exclusive access*, *Validity*, *Exchange*): it touches nothing.
unsafe impl Executable for Panicking {
    fn source(&self) -> Option<&str> {
        None
    }

    fn run(&self, _segment: usize, _frame: &mut Frame, _start: Start<'_>) -> Result<Outcome> {
        panic!("a panicking device runs nothing")
    }
}

/// The device that panics.
pub fn panicking() -> Device {
    Device::new(Arc::new(Panicking))
}
