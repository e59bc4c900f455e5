//! Which values the adjoint needs, and so which arrays must be put back before a step is reversed.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Binary, Combine, LoopKind, Op, Program, Stmt, ValueId, walk};

use crate::activity::Activity;
use crate::library::needed_by;
use crate::rules::is_linear;

/// The arrays whose contents adjoints of parallel loops read, and from which top-level statement on: what they
/// hold is recorded when that statement, or a later one, overwrites them.
///
/// Arrays that are swapped with one another share memory in turn, so they are in together or not at all. What is
/// read at program level is a scalar: it stays at hand, or is put aside.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    since: BTreeMap<ArrayId, usize>,
}

impl Needed {
    /// Must what `array` holds be recorded when the top-level statement `position` overwrites it?
    pub fn before(&self, array: ArrayId, position: usize) -> bool {
        self.since.get(&array).is_some_and(|since| *since <= position)
    }
}

/// Finds the arrays that the adjoint reads.
pub(crate) fn needed_arrays(program: &Program, activity: &Activity) -> Needed {
    let mut position: BTreeMap<ValueId, usize> = BTreeMap::new();
    let classes = swap_classes(program);
    let mut since: BTreeMap<ArrayId, usize> = BTreeMap::new();
    for (k, top) in program.body.iter().enumerate() {
        walk(std::slice::from_ref(top), &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                walk(&par.body, &mut |inner| {
                    if let Stmt::Let(v) = inner {
                        position.insert(*v, k);
                    }
                });
            }
            // Who won is told from what was there before and what is there after.
            if let Stmt::Update(Combine::Min | Combine::Max, s) = stmt
                && activity.arrays.contains(&s.array)
            {
                since.entry(classes[&s.array]).or_insert(k);
            }
            if let Stmt::Library(call) = stmt {
                for array in needed_by(call, activity) {
                    since.entry(classes[&array]).or_insert(k);
                }
            }
        });
    }
    let mut values: Vec<ValueId> = Vec::new();
    let active = |v: &ValueId| activity.values.contains(v);
    walk(&program.body, &mut |stmt| {
        match stmt {
            Stmt::Let(v) if active(v) => match *program.op(*v) {
                Op::Load(_, index) => values.extend(index.as_slice()),
                // Each factor is needed where the other one is active.
                Op::Binary(Binary::Mul, a, b) => {
                    values.extend(active(&b).then_some(a));
                    values.extend(active(&a).then_some(b));
                }
                Op::Fma(a, b, _) => {
                    values.extend(active(&b).then_some(a));
                    values.extend(active(&a).then_some(b));
                }
                Op::Select(c, ..) => values.push(c),
                op if is_linear(&op) => {}
                op => values.extend(op.operands()),
            },
            Stmt::Store(s) | Stmt::Update(_, s) if activity.arrays.contains(&s.array) => {
                values.extend(s.index.as_slice());
                values
                    .extend(matches!(stmt, Stmt::Update(Combine::Min | Combine::Max, _)).then_some(s.value));
            }
            Stmt::Claim(claim) if activity.arrays.contains(&claim.array) => {
                values.extend(claim.index.as_slice());
            }
            Stmt::If(branch) => values.push(branch.condition),
            Stmt::Loop(l) => {
                match &l.kind {
                    LoopKind::For { from, to, .. } => values.extend([*from, *to]),
                    LoopKind::While { condition, .. } => values.push(*condition),
                    LoopKind::Forever => {}
                }
                values.extend(l.until);
            }
            Stmt::Par(par) => values.extend(par.ranges.iter().flat_map(|r| [r.from, r.to])),
            _ => {}
        };
    });
    // What a local holds is made of everything that was ever put into it.
    let mut into: BTreeMap<_, Vec<ValueId>> = BTreeMap::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Declare(local, v) | Stmt::Set(local, v) = stmt {
            into.entry(*local).or_default().push(*v);
        }
    });
    let mut seen: BTreeSet<ValueId> = BTreeSet::new();
    while let Some(v) = values.pop() {
        if !seen.insert(v) {
            continue;
        }
        match program.op(v) {
            Op::Load(array, index) => {
                if let Some(at) = position.get(&v) {
                    let first = since.entry(classes[array]).or_insert(*at);
                    *first = (*first).min(*at);
                }
                values.extend(index.as_slice());
            }
            Op::Get(local) => values.extend(into.get(local).into_iter().flatten()),
            op => values.extend(op.operands()),
        }
    }
    let since = classes.iter().filter_map(|(array, class)| Some((*array, *since.get(class)?))).collect();
    Needed { since }
}

/// For each array the first of those that it is swapped with, directly or through others.
pub(crate) fn swap_classes(program: &Program) -> BTreeMap<ArrayId, ArrayId> {
    let mut class: BTreeMap<ArrayId, ArrayId> = program.array_ids().map(|a| (a, a)).collect();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Swap(a, b) = stmt {
            let (x, y) = (class[a], class[b]);
            class.values_mut().filter(|c| **c == x.max(y)).for_each(|c| *c = x.min(y));
        }
    });
    class
}
