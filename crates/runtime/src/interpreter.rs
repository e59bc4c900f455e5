//! The interpreter as a device: slow, obvious, always there.

use std::sync::Arc;

use ebbtide_ir::{self as ir, Bytes, Facts, HostArray, Machine, Outcome, Program, Role};

use crate::device::{Backend, Device, Executable};
use crate::error::{Error, Result};
use crate::frame::{Frame, View};

/// A device that interprets programs.
pub fn interpreter() -> Device {
    Device::new(Arc::new(Interpreter))
}

struct Interpreter;

struct Interpreted {
    program: Arc<Program>,
    facts: Arc<Facts>,
}

impl Backend for Interpreter {
    fn name(&self) -> &str {
        "interpreter"
    }

    fn compile(&self, program: &Arc<Program>, facts: &Arc<Facts>) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Interpreted { program: program.clone(), facts: facts.clone() }))
    }
}

impl Executable for Interpreted {
    fn source(&self) -> Option<&str> {
        None
    }

    fn run(&self, frame: &mut Frame) -> Result<Outcome> {
        let arrays = self.program.array_ids().map(|id| {
            let view = frame.arrays[id.index()];
            host_array(
                view,
                self.program.array(id).rank,
                matches!(self.program.array(id).role, Role::Param(ir::Access::Read)),
            )
        });
        let mut machine = Machine::new(&self.program, &self.facts, &frame.arguments, arrays.collect());
        machine
            .run()
            .map_err(|fault| Error::Program(ir::Error::Run { program: self.program.name.clone(), fault }))
    }
}

fn host_array<'a>(view: View, rank: usize, read_only: bool) -> HostArray<'a> {
    let shape = view.shape[..rank].to_vec();
    if view.address.is_null() {
        return HostArray { shape, bytes: Bytes::Own(Vec::new()) };
    }
    let bytes = if read_only {
        // SAFETY (*Liveness*, *Bounds*): see `Frame::bytes`; nobody writes an array that the launch only borrows.
        Bytes::Shared(unsafe { std::slice::from_raw_parts(view.address, view.bytes) })
    } else {
        // SAFETY (*Exclusive access*): the launch holds written arrays exclusively, each under one identifier.
        Bytes::Exclusive(unsafe { std::slice::from_raw_parts_mut(view.address, view.bytes) })
    };
    HostArray { shape, bytes }
}
