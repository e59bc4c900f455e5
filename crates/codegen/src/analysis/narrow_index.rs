//! Index values of loops without checks that fit 32 bits. Input: a parallel loop whose variables are narrow; output: how far
//! from zero its values can be.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Binary, Op, Par, Program, Stmt, Type, ValueId, walk};

use crate::analysis::remainders::Remainders;
use crate::kernel::machine::SMALL;

/// How far from zero the narrow values of a loop can be.
pub(crate) type Narrow = BTreeMap<ValueId, i64>;

/// The values of a loop that are narrow where its variables are.
pub(crate) fn narrow_values(program: &Program, par: &Par, remainders: &Remainders) -> Narrow {
    let mut narrow: Narrow = par.ranges.iter().map(|r| (r.var, SMALL)).collect();
    walk(&par.body, &mut |stmt| {
        let Stmt::Let(v) = stmt else { return };
        if let Some(Some(of)) = remainders.get(v)
            && narrow.contains_key(&of.variable)
        {
            narrow.insert(*v, SMALL);
        } else if let Op::Binary(Binary::Add | Binary::Sub, a, b) = *program.op(*v)
            && program.ty(*v) == Type::Index
            && let (Some(a), Some(b)) = (distance(program, &narrow, a), distance(program, &narrow, b))
            && a.saturating_add(b) < i32::MAX.into()
        {
            narrow.insert(*v, a + b);
        }
    });
    narrow
}

/// The values from outside a loop that its narrow ones are compared with, or divided by.
pub(crate) fn compared_with(
    program: &Program,
    narrow: &Narrow,
    remainders: &Remainders,
    inside: &BTreeSet<ValueId>,
    par: &Par,
) -> BTreeSet<ValueId> {
    let near = remainders.iter().filter(|(v, _)| narrow.contains_key(v)).filter_map(|(_, of)| of.as_ref());
    let mut bounds: BTreeSet<ValueId> =
        near.map(|of| of.divisor).filter(|v| program.literal(*v).is_none()).collect();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Compare(_, a, b) = *program.op(*v)
            && (narrow.contains_key(&a) || narrow.contains_key(&b))
        {
            let wide = |v: &ValueId| distance(program, narrow, *v).is_none() && !inside.contains(v);
            bounds.extend([a, b].into_iter().filter(wide));
        }
    });
    bounds
}

/// How far from zero a value of a narrow loop can be.
pub(crate) fn distance(program: &Program, narrow: &Narrow, v: ValueId) -> Option<i64> {
    let literal = || program.literal(v)?.to_i64()?.checked_abs().filter(|c| *c < SMALL);
    narrow.get(&v).copied().or_else(literal)
}
