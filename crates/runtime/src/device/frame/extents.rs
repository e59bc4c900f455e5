//! What can be computed of a program from its arguments alone.

use ebbtide_ir::{ArrayId, Literal, Op, Program, Role, ValueId, evaluate};

use super::View;
use crate::error::{Error, Result};

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

/// Does a value follow from the arguments of every launch, as [`from_arguments`] computes it? A value that has no result, such
/// as a quotient by zero, is none of them all the same.
pub fn follows_from_arguments(program: &Program, value: ValueId) -> bool {
    let mut seen = std::collections::HashSet::from([value]);
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        let needs: Vec<ValueId> = match program.op(v) {
            Op::LoopVar | Op::Get(_) | Op::Load(..) => return false,
            Op::Dim(array, k) => match &program.array(*array).role {
                Role::Temp(shape) => shape.get(*k as usize).copied().into_iter().collect(),
                _ => Vec::new(),
            },
            op => op.operands().collect(),
        };
        work.extend(needs.into_iter().filter(|v| seen.insert(*v)));
    }
    true
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
