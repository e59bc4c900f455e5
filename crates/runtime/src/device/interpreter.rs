//! The interpreter as a device: slow, obvious, always there.

use std::sync::Arc;

use ebbtide_ir::{
    self as ir, ArrayId, Block, Bytes, Checks, Dead, Facts, HostArray, Machine, Modes, Outcome, Program,
    Role, poison,
};
use ebbtide_sweep::Cancel;

use crate::device::frame::{Frame, View};
use crate::device::{Backend, Device, Executable, Start};
use crate::error::{Error, Result};

/// A device that interprets programs. `EBBTIDE_MODES` names [modes](Modes) that it runs under, for tests:
/// `EBBTIDE_MODES=poison,races,shuffled=1`.
pub fn interpreter() -> Device {
    let asked = std::env::var("EBBTIDE_MODES").unwrap_or_default();
    interpreter_with(asked.parse().unwrap_or_else(|error: String| {
        crate::warn(&format!("EBBTIDE_MODES: {error}"));
        Modes::default()
    }))
}

/// A device that interprets programs and stops at the first NaN that one writes.
pub fn checked() -> Device {
    interpreter_with(Modes { checks: Checks::Numbers, ..Modes::default() })
}

/// A device that interprets programs under these modes.
pub fn interpreter_with(modes: Modes) -> Device {
    Device::new(Arc::new(Interpreter { modes }))
}

struct Interpreter {
    modes: Modes,
}

struct Interpreted {
    program: Arc<Program>,
    facts: Arc<Facts>,
    segments: Vec<Block>,
    modes: Modes,
}

// SAFETY (*Faithful code*): what is interpreted is what is given; (*One memory*): the host's.
unsafe impl Backend for Interpreter {
    fn name(&self) -> &str {
        match self.modes.checks {
            Checks::Usual => "interpreter",
            Checks::Numbers => "checked",
        }
    }

    fn interprets(&self) -> bool {
        true
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        let segments = segments.iter().map(|block| (*block).clone()).collect();
        let (program, facts) = (program.clone(), facts.clone());
        Ok(Arc::new(Interpreted { program, facts, segments, modes: self.modes }))
    }
}

// SAFETY (*Bounds*, *Exclusive access*): the machine is safe Rust over slices of the frame's arrays, shared ones where the
// program only reads; (*Validity*): the verifier has checked that what is stored has the array's type; (*Exchange*): the
// machine exchanges slices of arrays of equal shapes, which it checks.
unsafe impl Executable for Interpreted {
    fn source(&self) -> Option<&str> {
        None
    }

    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome> {
        let program = &self.program;
        let arrays = program.array_ids().map(|id| {
            let decl = program.array(id);
            if let Role::Old(_) = decl.role {
                // Each push makes it a copy of its own: two names for one place are not to be had here.
                let view = frame.arrays[id.index()];
                return HostArray {
                    shape: view.shape[..decl.rank].to_vec(),
                    bytes: Bytes::Own(vec![0; view.bytes]),
                };
            }
            host_array(
                frame.arrays[id.index()],
                decl.rank,
                matches!(decl.role, Role::Param(ir::Access::Read)),
            )
        });
        let mut machine = Machine::new(program, &self.facts, &frame.arguments, arrays.collect());
        machine.modes = self.modes;
        machine.stop = frame.cancel.as_ref().map(Cancel::word);
        machine.done = Some(&frame.done);
        machine.scalars = std::mem::take(&mut frame.scalars);
        for ((tape, kept), (view, decl)) in
            machine.tapes.iter_mut().zip(&frame.tapes).zip(frame.arrays.iter().zip(&program.arrays))
        {
            tape.depth = kept.depth;
            // What was put there while the array had another shape is popped when it has that shape again.
            let place = |address: &*mut u8| {
                let bytes = view.bytes.min(frame.room(*address, view));
                host_array(View { address: *address, bytes, ..*view }, decl.rank, false)
            };
            tape.places = kept.places.iter().map(place).collect();
        }
        let outcome = match start {
            Start::Beginning => machine.run_block(&self.segments[segment]),
            Start::At(place) => machine.resume_block(&self.segments[segment], place),
        };
        let address = |array: &mut HostArray| match &mut array.bytes {
            Bytes::Exclusive(bytes) => Some(bytes.as_mut_ptr()),
            _ => None,
        };
        for (view, array) in frame.arrays.iter_mut().zip(&mut machine.arrays) {
            view.address = address(array).unwrap_or(view.address);
        }
        for (kept, tape) in frame.tapes.iter_mut().zip(&mut machine.tapes) {
            kept.depth = tape.depth;
            kept.places = tape.places.iter_mut().filter_map(address).collect();
        }
        frame.scalars = std::mem::take(&mut machine.scalars);
        outcome.map_err(|fault| Error::of_run(program, fault))
    }

    fn forget(&self, frame: &mut Frame, arrays: &[ArrayId]) {
        if self.modes.dead == Dead::Poisoned {
            for array in arrays {
                poison(self.program.array(*array).ty, frame.bytes_mut(*array));
            }
        }
    }
}

fn host_array<'a>(view: View, rank: usize, read_only: bool) -> HostArray<'a> {
    let shape = view.shape[..rank].to_vec();
    if view.address.is_null() {
        return HostArray { shape, bytes: Bytes::Own(Vec::new()) };
    }
    let bytes = if read_only {
        // SAFETY (*Liveness*, *Bounds*): see `Frame::bytes`; nothing writes an array that the launch only borrows.
        Bytes::Shared(unsafe { std::slice::from_raw_parts(view.address, view.bytes) })
    } else {
        // SAFETY (*Exclusive access*): the launch holds written arrays exclusively, each under one identifier.
        Bytes::Exclusive(unsafe { std::slice::from_raw_parts_mut(view.address, view.bytes) })
    };
    HostArray { shape, bytes }
}

#[cfg(test)]
mod tests {
    use ebbtide_ir::{Access, Builder, Type};

    use super::*;
    use crate::{Arg, Compiled, Status};

    #[test]
    fn after_a_swap_the_callers_handles_show_what_the_program_calls_by_their_names() {
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let y = b.array("y", Type::F64, 1, Access::Write);
        b.swap(x, y);
        let device = interpreter();
        let compiled = Compiled::new(&b.finish().unwrap(), &device).unwrap();
        let (mut x, mut y) = (device.array(&[1.0, 2.0]).unwrap(), device.array(&[3.0, 4.0]).unwrap());
        let status = compiled.launch(vec![Arg::Write(x.any_mut()), Arg::Write(y.any_mut())]).unwrap();
        assert_eq!((status, x.to_vec(), y.to_vec()), (Status::Done, vec![3.0, 4.0], vec![1.0, 2.0]));
    }
}
