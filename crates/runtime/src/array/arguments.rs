//! Arguments of a launch: checking them against the program, and what can be computed from them alone.

use ebbtide_ir::{Access, ArrayId, Literal, Param, Program, Role};

use crate::array::any_array::{AnyArray, AnyMut};
use crate::device::Device;
use crate::device::frame::View;
use crate::error::{Error, Result};
use crate::memory::device_memory::Handed;

/// One argument of a launch.
#[derive(Debug)]
pub enum Arg<'a> {
    /// An array that the program reads.
    Read(&'a AnyArray),
    /// An array that the program may write.
    Write(AnyMut<'a>),
    /// A scalar.
    Scalar(Literal),
}

/// Checks the arguments and gives the views of all parameters and the scalars; waits for other launches that use
/// the arrays.
pub(crate) fn bind(
    program: &Program,
    device: &Device,
    args: &[Arg<'_>],
) -> Result<(Vec<View>, Vec<Literal>)> {
    if args.len() != program.params.len() {
        let message = format!("{} arguments for {} parameters", args.len(), program.params.len());
        return Err(Error::launch(program, message));
    }
    bind_first(program, device, args)
}

/// As [`bind`], for the first parameters only.
pub(crate) fn bind_first(
    program: &Program,
    device: &Device,
    args: &[Arg<'_>],
) -> Result<(Vec<View>, Vec<Literal>)> {
    let mut views = vec![View::EMPTY; program.arrays.len()];
    let mut scalars = vec![Literal::from(false); program.scalars.len()];
    for (param, arg) in program.params.iter().zip(args) {
        if let Arg::Write(array) = arg {
            array.buffer.settle();
        }
        match (param, arg) {
            (Param::Array(id), Arg::Read(array)) => {
                views[id.index()] = view(program, device, *id, array, Access::Read)?
            }
            (Param::Array(id), Arg::Write(array)) => {
                views[id.index()] = view(program, device, *id, array, Access::Write)?
            }
            (Param::Scalar(id), Arg::Scalar(literal)) => {
                let decl = &program.scalars[id.index()];
                if literal.ty() != decl.ty {
                    let message = format!("`{}` is `{}`, not `{}`", decl.name, decl.ty, literal.ty());
                    return Err(Error::launch(program, message));
                }
                scalars[id.index()] = *literal;
            }
            (Param::Array(id), Arg::Scalar(_)) => {
                return Err(Error::launch(
                    program,
                    format!("`{}` is an array, not a scalar", program.array(*id).name),
                ));
            }
            (Param::Scalar(id), _) => {
                let message = format!("`{}` is a scalar, not an array", program.scalars[id.index()].name);
                return Err(Error::launch(program, message));
            }
        }
    }
    Ok((views, scalars))
}

fn view(program: &Program, device: &Device, id: ArrayId, array: &AnyArray, access: Access) -> Result<View> {
    let decl = program.array(id);
    let fail = |message: String| Err(Error::launch(program, message));
    if array.ty() != decl.ty || array.shape().len() != decl.rank {
        return fail(format!(
            "`{}` is an Array{}<{}>, not an Array{}<{}>",
            decl.name,
            decl.rank,
            decl.ty,
            array.shape().len(),
            array.ty()
        ));
    }
    if !array.device().same(device) {
        let (name, theirs, ours) = (&decl.name, array.device().name(), device.name());
        return fail(match theirs == ours {
            false => format!(
                "`{name}` lives on the {theirs} device and the program was compiled for the {ours} device"
            ),
            true => format!(
                "`{name}` lives on another {theirs} device than the one that the program was compiled for: make a \
                 device once and use it, or its clones, for programs and arrays"
            ),
        });
    }
    if decl.role == Role::Param(Access::Write) && access == Access::Read {
        return fail(format!("`{}` is written by the program and must be passed as `&mut`", decl.name));
    }
    let handed = match decl.role {
        Role::Param(Access::Write) => Handed::ForWriting,
        _ => Handed::ForReading,
    };
    let (address, bytes) = array.buffer.hand_over(handed)?;
    Ok(View::new(address, array.shape(), bytes))
}
