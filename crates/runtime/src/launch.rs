//! Compiled programs: compile → launch → status.

use std::collections::HashMap;
use std::sync::Arc;

use ebbtide_ir::{self as ir, Access, Outcome, Param, Program, Role};

use crate::arguments::{Arg, bind};
use crate::device::{Device, Executable, Start};
use crate::error::{Error, Result};
use crate::frame::Frame;

/// A program compiled for a device, without the types of its parameters.
#[derive(Clone)]
pub struct Compiled {
    program: Arc<Program>,
    device: Device,
    executable: Arc<dyn Executable>,
}

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a program that can yield may not be done yet"]
pub enum Status {
    /// The program reached its end.
    Done,
}

impl Compiled {
    /// Verifies and compiles a program.
    pub fn new(program: &Program, device: &Device) -> Result<Compiled> {
        let facts = Arc::new(ir::verify(program)?);
        let program = Arc::new(program.clone());
        let executable = device.backend().compile(&program, &facts, &[&program.body])?;
        Ok(Compiled { program, device: device.clone(), executable })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The generated source, where the device generates any.
    pub fn source(&self) -> Option<&str> {
        self.executable.source()
    }

    /// Runs the program and waits for its end.
    pub fn launch(&self, mut args: Vec<Arg<'_>>) -> Result<Status> {
        let (views, scalars) = bind(&self.program, &self.device, &args)?;
        let mut frame = Frame::new(&self.program, views, scalars, self.device.meter())?;
        let outcome = self.executable.run(0, &mut frame, Start::Beginning);
        give_back(&self.program, &frame, &mut args);
        match outcome? {
            Outcome::Done => Ok(Status::Done),
            Outcome::Yielded { .. } => {
                Err(Error::launch(&self.program, "yields are not driven yet".to_string()))
            }
        }
    }
}

/// After `swap`, the memory of one parameter is another's: the caller's handles follow the names.
fn give_back(program: &Program, frame: &Frame, args: &mut [Arg<'_>]) {
    let mut owner: HashMap<*mut u8, usize> = HashMap::new();
    for (i, arg) in args.iter().enumerate() {
        if let Arg::Write(array) = arg {
            owner.insert(array.buffer.address(), i);
        }
    }
    for i in 0..args.len() {
        let Param::Array(id) = program.params[i] else { continue };
        if program.array(id).role != Role::Param(Access::Write) {
            continue;
        }
        let wanted = frame.arrays[id.index()].address;
        let Arg::Write(array) = &args[i] else { continue };
        let held = array.buffer.address();
        if held == wanted {
            continue;
        }
        let Some(&j) = owner.get(&wanted) else { continue };
        if let Ok([Arg::Write(a), Arg::Write(b)]) = args.get_disjoint_mut([i, j]) {
            std::mem::swap(&mut a.buffer, &mut b.buffer);
            owner.insert(wanted, i);
            owner.insert(held, j);
        }
    }
}
