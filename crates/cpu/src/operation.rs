//! Custom operations: compiled code calls back to the host.

use std::sync::{Mutex, PoisonError};

use ebbtide_codegen::Unit;
use ebbtide_ir::{Access, Bound, HostArg, LibraryCall, Literal, Program, parts};

use crate::leave_vectors::leave_vectors;

/// What a launch knows when compiled code calls.
pub(crate) struct Context<'a> {
    pub program: &'a Program,
    pub unit: &'a Unit,
    /// What the operation that failed said.
    pub message: Mutex<String>,
}

/// Runs operation `number` of the unit; not zero if it failed.
pub(crate) extern "C" fn call(
    context: *const Context<'static>,
    number: i64,
    data: *const *mut u8,
    shapes: *const i64,
    scalars: *const u64,
) -> i32 {
    leave_vectors();
    // SAFETY (*Liveness*): the launch keeps its context until all its threads have returned. The lifetime in the type
    // only stands for that one.
    let context = unsafe { &*context };
    let Some(call) = context.unit.calls.get(number as usize) else { return 1 };
    let Err(message) = run(context.program, call, data, shapes, scalars) else { return 0 };
    *context.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
    1
}

fn run(
    program: &Program,
    call: &LibraryCall,
    mut data: *const *mut u8,
    mut shapes: *const i64,
    mut scalars: *const u64,
) -> Result<(), String> {
    let mut args: Vec<HostArg<'_>> = Vec::with_capacity(call.arguments.len());
    for bound in &call.arguments {
        match *bound {
            Bound::Array(array, access) => {
                let decl = program.array(array);
                // SAFETY (*Bounds*): the code prints one address and `rank` extents for each array, in order.
                let (start, shape) = unsafe { (*data, std::slice::from_raw_parts(shapes, decl.rank)) };
                // SAFETY (*Bounds*): the tables have one entry more than there are arguments.
                (data, shapes) = unsafe { (data.add(1), shapes.add(decl.rank)) };
                let ty = decl.ty;
                let bytes = shape.iter().product::<i64>() as usize * ty.size();
                args.push(match access {
                    _ if bytes == 0 && access == Access::Read => HostArg::Read { ty, shape, bytes: &[] },
                    _ if bytes == 0 => HostArg::Write { ty, shape, bytes: &mut [] },
                    Access::Read => {
                        // SAFETY (*Liveness*, *Bounds*): the frame's memory of an array of this shape; other threads
                        // wait at a barrier, and nobody writes it.
                        let bytes = unsafe { std::slice::from_raw_parts(start, bytes) };
                        HostArg::Read { ty, shape, bytes }
                    }
                    Access::Write => {
                        // SAFETY (*Exclusive access*): as above; a written array stands in no other place (law 11).
                        let bytes = unsafe { std::slice::from_raw_parts_mut(start, bytes) };
                        HostArg::Write { ty, shape, bytes }
                    }
                });
            }
            Bound::Scalar(v) => {
                // SAFETY (*Bounds*): the code prints one word for each scalar, in order, and one more.
                let bits = unsafe { *scalars };
                // SAFETY (*Bounds*): as above.
                scalars = unsafe { scalars.add(1) };
                args.push(HostArg::Scalar(Literal::from_bits(program.ty(v), bits)));
            }
        }
    }
    parts::call_operation(program, call, &mut args)
}
