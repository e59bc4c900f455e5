//! What of a gradient program hangs on the shapes of arrays that the host may change where the program yields.
//!
//! Input: a gradient program. Output: the arrays that may get another shape, and the values that are computed from shapes.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Access, ArrayId, Op, Param, Program, Role, Stmt, ValueId, walk};

/// An array that the caller lent for writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    /// The parameter that the working copy is made from, which is not looked at again.
    pub given: ArrayId,
    /// The parameter that takes its value at the end.
    pub value: Option<ArrayId>,
}

/// What hangs on shapes.
#[derive(Debug, Default)]
pub(crate) struct LentArrays {
    /// By working copy.
    pub arrays: BTreeMap<ArrayId, Lent>,
    /// The values that are computed from shapes, operands before uses.
    pub values: Vec<ValueId>,
}

impl LentArrays {
    /// Of a gradient program of this source.
    pub fn of(source: &Program, program: &Program) -> LentArrays {
        let mut arrays = BTreeMap::new();
        let written = |a: &ArrayId| {
            a.index() < source.arrays.len() && source.array(*a).role == Role::Param(Access::Write)
        };
        let role = |a: ArrayId| &program.array(a).role;
        for stmt in &program.body {
            if let Stmt::Copy { from, to, .. } = *stmt
                && written(&to)
                && *role(from) == Role::Param(Access::Read)
            {
                arrays.insert(to, Lent { given: from, value: None });
            }
        }
        for stmt in &program.body {
            if let Stmt::Copy { from, to, .. } = *stmt
                && *role(to) == Role::Param(Access::Write)
                && let Some(lent) = arrays.get_mut(&from)
            {
                lent.value = Some(to);
            }
        }
        arrays.retain(|_, lent| is_copied_alone(program, lent));
        LentArrays { arrays, values: of_shapes(program) }
    }
}

/// Are the parameters of a working copy touched by nothing but the copies at the beginning and at the end? Then their
/// memory need not have the shape that the array has in between.
fn is_copied_alone(program: &Program, lent: &Lent) -> bool {
    let ours: BTreeSet<ArrayId> = lent.value.into_iter().chain([lent.given]).collect();
    let loaded =
        program.values.iter().any(|value| matches!(value.op, Op::Load(array, _) if ours.contains(&array)));
    let mut touched = 0;
    walk(&program.body, &mut |stmt| {
        touched += match stmt {
            Stmt::Copy { from, to, .. } => usize::from(ours.contains(from)) + usize::from(ours.contains(to)),
            Stmt::Library(call) => call.reads.iter().chain(&call.writes).filter(|a| ours.contains(a)).count(),
            Stmt::Store(s) | Stmt::Update(_, s) => usize::from(ours.contains(&s.array)),
            Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Pop(a) => usize::from(ours.contains(a)),
            Stmt::Swap(a, b) => usize::from(ours.contains(a)) + usize::from(ours.contains(b)),
            Stmt::Push(push) => usize::from(ours.contains(&push.array)),
            _ => 0,
        }
    });
    !loaded && touched == ours.len() && program.params.contains(&Param::Array(lent.given))
}

/// The values that are computed from shapes by arithmetic, operands before uses.
fn of_shapes(program: &Program) -> Vec<ValueId> {
    /// What is known of a value.
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Begun,
        Other,
        OfShapes,
    }
    let mut seen = vec![Seen::No; program.values.len()];
    let mut order = Vec::new();
    for start in 0..program.values.len() {
        let mut work = vec![ValueId::from_index(start)];
        while let Some(v) = work.last().copied() {
            let op = program.op(v);
            let data = matches!(op, Op::Load(..) | Op::Get(_) | Op::LoopVar);
            match seen[v.index()] {
                Seen::No if data => seen[v.index()] = Seen::Other,
                Seen::No => {
                    seen[v.index()] = Seen::Begun;
                    work.extend(op.operands().filter(|o| seen[o.index()] == Seen::No));
                    continue;
                }
                Seen::Begun => {
                    let shaped = op.operands().any(|o| seen[o.index()] == Seen::OfShapes);
                    let shaped = shaped || matches!(op, Op::Dim(..));
                    seen[v.index()] = if shaped { Seen::OfShapes } else { Seen::Other };
                    order.extend(shaped.then_some(v));
                }
                Seen::Other | Seen::OfShapes => {}
            }
            work.pop();
        }
    }
    order
}
