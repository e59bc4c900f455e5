//! Devices for tests: `_own_memory` plays a GPU on machines without one (the interpreter, over memory that is the host's and is
//! handled as a device's); `_panicking` panics, as a flaw of a device would.

use std::sync::Arc;

use ebbtide_ir::{Block, Facts, Outcome, Program};
use ebbtide_runtime::testing::{FakeMemory, device_with_memory};
use ebbtide_runtime::{Backend, Device, Executable, Frame, Result, Shared, Start, interpreter};

/// DLPack's number for devices of extensions.
const EXTENSION: i32 = 12;

/// What producers are told to order their work by.
const STREAM: u64 = 4711;

/// The device.
pub fn own_memory() -> Device {
    let memory = FakeMemory::shared_as(Shared { kind: EXTENSION, ordinal: 0, stream: STREAM });
    device_with_memory("own memory", memory, &interpreter())
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
