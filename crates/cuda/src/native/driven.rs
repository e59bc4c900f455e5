//! Segments with operations of the host in them: loops and branches around them are driven from here.

use ebbtide_ir::{Access, Bound, Fault, HostArg, LibraryCall, Literal, ValueId};
use ebbtide_runtime::{Error, Executable, Frame, Result, Start, View, from_arguments};

use super::halos::{exchange, is_exchange};
use super::{Native, lost};
use crate::hosted::{Around, Part};
use crate::sys::Address;
use crate::tables::Wanted;

impl Native {
    /// Does what a segment does, where operations of the host are in it. The depth of recursion is that of nesting in the
    /// source.
    pub(super) fn drive(&self, parts: &[Part], frame: &mut Frame) -> Result<()> {
        for part in parts {
            frame.go_on(&self.program)?;
            match part {
                Part::Kernel(kernel) => self.start(*kernel, frame, Start::Beginning, Wanted::Nothing)?,
                Part::Call(call) => self.call(call, frame)?,
                Part::If { condition, then, otherwise } => {
                    let taken = self.value(*condition, frame)? != 0;
                    self.drive(if taken { then } else { otherwise }, frame)?;
                }
                Part::Loop { around: Around::For { var, from, to }, body, until } => {
                    let (from, to) = (self.value(*from, frame)? as i64, self.value(*to, frame)? as i64);
                    for pass in from..to {
                        frame.scalars.values[var.index()] = pass as u64;
                        self.drive(body, frame)?;
                        if self.ends(*until, frame)? {
                            break;
                        }
                    }
                }
                Part::Loop { around: Around::While { head, condition }, body, until } => loop {
                    self.drive(head, frame)?;
                    if self.value(*condition, frame)? == 0 {
                        break;
                    }
                    self.drive(body, frame)?;
                    if self.ends(*until, frame)? {
                        break;
                    }
                },
                Part::Loop { around: Around::Forever, body, until } => loop {
                    self.drive(body, frame)?;
                    if self.ends(*until, frame)? {
                        break;
                    }
                },
            }
        }
        Ok(())
    }

    /// Is a loop left after this pass?
    fn ends(&self, until: Option<ValueId>, frame: &mut Frame) -> Result<bool> {
        until.map_or(Ok(false), |until| Ok(self.value(until, frame)? != 0))
    }

    /// What a value is now.
    fn value(&self, v: ValueId, frame: &mut Frame) -> Result<u64> {
        if let Some(bits) = from_arguments(&self.program, v, &frame.arrays, &frame.arguments) {
            return Ok(bits);
        }
        self.settle(frame)?;
        Ok(frame.scalars.values[v.index()])
    }

    /// Runs an operation of the host: an exchange on boxes of its arrays, any other on copies of them.
    fn call(&self, call: &LibraryCall, frame: &mut Frame) -> Result<()> {
        let Some(operation) = self.program.operation(call) else { return Err(lost()) };
        self.settle(frame)?;
        let fault = |message| {
            let (operation, site) = (operation.name.clone(), call.site.clone());
            let fault = Fault::Operation { operation, message, site };
            Error::of_run(&self.program, fault)
        };
        if is_exchange(&self.program, call) {
            return exchange(&self.gpu, &self.staging, &self.program, call, frame).map_err(fault);
        }
        let mut copies: Vec<(View, Vec<u8>)> = Vec::new();
        for array in call.arguments.iter().filter_map(|bound| bound.array()) {
            let view = frame.arrays[array.index()];
            let mut bytes = vec![0u8; view.bytes];
            // SAFETY (*Bounds*, *Liveness*): the array has as many bytes; the wait follows.
            unsafe { self.gpu.fetch(view.address as Address, bytes.as_mut_ptr(), view.bytes)? };
            copies.push((view, bytes));
        }
        self.gpu.wait()?;
        let mut scalars = Vec::new();
        for v in call.arguments.iter().filter_map(|bound| bound.scalar()) {
            scalars.push(Literal::from_bits(self.program.ty(v), self.value(v, frame)?));
        }
        let (mut arrays, mut scalars) = (copies.iter_mut(), scalars.into_iter());
        let mut args: Vec<HostArg<'_>> = Vec::with_capacity(call.arguments.len());
        for bound in &call.arguments {
            match bound {
                Bound::Array(array, access) => {
                    let Some((view, bytes)) = arrays.next() else { return Err(lost()) };
                    let decl = self.program.array(*array);
                    let (ty, shape) = (decl.ty, &view.shape[..decl.rank]);
                    args.push(match access {
                        Access::Read => HostArg::Read { ty, shape, bytes },
                        Access::Write => HostArg::Write { ty, shape, bytes },
                    });
                }
                Bound::Scalar(_) => args.extend(scalars.next().map(HostArg::Scalar)),
            }
        }
        ebbtide_ir::parts::call_operation(&self.program, call, &mut args).map_err(fault)?;
        let accesses = call.arguments.iter().filter_map(|bound| match bound {
            Bound::Array(_, access) => Some(*access),
            Bound::Scalar(_) => None,
        });
        for ((view, bytes), access) in copies.iter().zip(accesses) {
            if access == Access::Write {
                // SAFETY (*Bounds*): as above; the driver has copied pageable memory when it returns.
                unsafe { self.gpu.send(bytes.as_ptr(), view.address as Address, bytes.len())? };
            }
        }
        Ok(())
    }
}
