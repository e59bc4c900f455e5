//! Arguments of a launch: checking them against the program, and what can be computed from them alone.

use ebbtide_ir::{Access, ArrayId, Literal, Op, Param, Program, Role, ValueId, evaluate};

use crate::any_array::{AnyArray, AnyMut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::frame::View;
use crate::memory::Handed;

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

/// The value of something that depends on shapes and scalar arguments alone.
pub fn from_arguments(program: &Program, value: ValueId, views: &[View], scalars: &[Literal]) -> Option<u64> {
    // Depth first, operands before what is made of them; a temporary's extents are the values it is declared with.
    let needs = |v: ValueId| -> Vec<ValueId> {
        match program.op(v) {
            Op::Dim(array, k) => match &program.array(*array).role {
                Role::Temp(shape) => shape.get(*k as usize).copied().into_iter().collect(),
                _ => Vec::new(),
            },
            op => op.operands().collect(),
        }
    };
    let mut known: std::collections::HashMap<ValueId, u64> = std::collections::HashMap::new();
    let mut work = vec![value];
    while let Some(v) = work.last().copied() {
        let missing: Vec<ValueId> = needs(v).into_iter().filter(|o| !known.contains_key(o)).collect();
        if !missing.is_empty() {
            work.extend(missing);
            continue;
        }
        work.pop();
        let bits = match *program.op(v) {
            Op::Scalar(s) => scalars[s.index()].bits(),
            Op::Dim(array, k) => match &program.array(array).role {
                Role::Temp(shape) => *known.get(shape.get(k as usize)?)?,
                _ => views[array.index()].shape[k as usize] as u64,
            },
            Op::LoopVar | Op::Get(_) | Op::Load(..) => return None,
            _ => evaluate::evaluate(program, v, |operand| known.get(&operand).copied().unwrap_or(0))?.ok()?,
        };
        known.insert(v, bits);
    }
    known.get(&value).copied()
}

/// The extents of a temporary.
pub(crate) fn extents(
    program: &Program,
    array: ArrayId,
    views: &[View],
    scalars: &[Literal],
) -> Result<Vec<usize>> {
    let decl = program.array(array);
    let Role::Temp(shape) = &decl.role else { return Ok(Vec::new()) };
    let extent = |v: &ValueId| {
        // What cannot be computed (a division by zero) stands before a declaration that is not reached.
        let extent = from_arguments(program, *v, views, scalars).unwrap_or(0) as i64;
        usize::try_from(extent).map_err(|_| {
            let name = &decl.name;
            Error::launch(
                program,
                match extent {
                    evaluate::OVERFLOW => format!("an extent of temporary `{name}` overflows 64 bits"),
                    _ => format!("an extent of temporary `{name}` is {extent}"),
                },
            )
        })
    };
    shape.iter().map(extent).collect()
}
