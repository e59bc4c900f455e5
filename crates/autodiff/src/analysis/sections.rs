//! Parallel loops that write a part of an array: a row, a slab, a side, an element.
//!
//! - Input: a parallel loop and an array that it writes.
//! - Output: the writes, where each iteration makes each of them once, at an element of its own, and some dimension of the array
//!   is not run through, or not far, or the run alone knows how far.
//! - Invariant: the elements that are written are as many as the loop has iterations, times the number of writes; their indices
//!   can be computed again from the loop's variables.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affines, ArrayId, Binary, Combine, Op, Par, ParFacts, Program, Range, Sharing, Stmt, Store, ValueId, walk,
};

/// Is it known before a run how many iterations a parallel loop has?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Known,
    Data,
}

/// The writes that make up the part, of those whose old elements must be `recorded`; `None` where the loop is known to write most
/// of the array, or its elements are not its own.
pub(crate) fn sections(
    (source, affines): (&Program, &Affines),
    (par, extent): (&Par, Extent),
    facts: &ParFacts,
    array: ArrayId,
    recorded: &dyn Fn(&Store) -> bool,
) -> Option<Vec<Store>> {
    let mut writes = 0;
    let mut inside: BTreeSet<ValueId> = BTreeSet::new();
    let mut claimed = false;
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) if s.array == array => writes += usize::from(recorded(s)),
        Stmt::Claim(claim) => claimed |= claim.array == array,
        Stmt::Let(v) => drop(inside.insert(*v)),
        _ => {}
    });
    let of_body = |stmt: &Stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(Combine::Add, s) if s.array == array && recorded(s) => Some(s.clone()),
        _ => None,
    };
    let stores: Vec<Store> = par.body.iter().filter_map(of_body).collect();
    let variables: Vec<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    let short = extent == Extent::Data
        || par.ranges.iter().any(|r| is_short(source, affines, r, stores.len() as i64));
    let is_part = |s: &Store| {
        let runs = |v: &ValueId| variables.iter().any(|var| affines.form(*v).coefficient(*var) != 0);
        let index = s.index.as_slice();
        facts.of(s) == Sharing::Own
            && (short || !index.iter().all(runs))
            && index.iter().all(|v| is_computable(source, *v, &variables, &inside))
    };
    (!claimed && writes == stores.len() && stores.iter().all(is_part)).then_some(stores)
}

/// So many elements are a small part of an array, unless the array is small.
const FEW: i64 = 64;

/// Are that many writes in each iteration of a range few, or as many as half of something at most?
fn is_short(source: &Program, affines: &Affines, range: &Range, writes: i64) -> bool {
    let Some(length) = affines.form(range.to).add_scaled(affines.form(range.from), -1) else { return false };
    let share = |v: ValueId| match *source.op(v) {
        Op::Binary(Binary::Div, all, by) => Some((affines.form(all), affines.form(by).as_constant()?)),
        _ => None,
    };
    match length.terms.as_slice() {
        [] => length.constant.saturating_mul(writes) <= FEW,
        [(part, 1)] => share(*part).is_some_and(|(_, by)| by / 2 >= writes),
        // The other half.
        [(a, x), (b, y)] if writes == 1 && x.abs() == 1 && x + y == 0 => {
            let (all, part) = if *x > 0 { (a, b) } else { (b, a) };
            share(*part) == Some((affines.form(*all), 2))
        }
        _ => false,
    }
}

/// Is the value made of these variables and of what is known before the loop?
pub(crate) fn is_computable(
    source: &Program,
    v: ValueId,
    variables: &[ValueId],
    inside: &BTreeSet<ValueId>,
) -> bool {
    let mut work = vec![v];
    while let Some(v) = work.pop() {
        if variables.contains(&v) || !inside.contains(&v) {
            continue;
        }
        match source.op(v) {
            Op::Load(..) | Op::Get(_) | Op::LoopVar => return false,
            op if op.is_pure() => work.extend(op.operands()),
            _ => return false,
        }
    }
    true
}
