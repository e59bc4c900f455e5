//! How much an iteration computes, and what that says of how to run it. Input: the body of a parallel loop; output: counts.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Block, LocalId, LoopKind, Op, Par, ParFacts, Program, Sharing, Stmt, ValueId, walk,
};

use crate::kernel::work::{TripCount, Work};

/// The work of a body: loops count as often as they run, where that is known outside the parallel loop whose values are
/// `inside`. The depth of recursion is that of nesting in the source.
pub(crate) fn work(program: &Program, inside: &BTreeSet<ValueId>, body: &Block) -> Work {
    let mut total = Work { own: 1, blocks: Vec::new() };
    for stmt in body {
        total.own += match stmt {
            Stmt::Let(v) => match program.op(*v) {
                Op::Math(..) | Op::Rand(..) => 60,
                Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) => 0,
                _ => 1,
            },
            _ => 1,
        };
        let trip_count = trip_count(program, inside, stmt);
        total.blocks.extend(stmt.blocks().map(|block| (trip_count, work(program, inside, block))));
    }
    total
}

/// How often a statement runs the blocks in it, where that is known outside the parallel loop whose values are `inside`.
pub(crate) fn trip_count(program: &Program, inside: &BTreeSet<ValueId>, stmt: &Stmt) -> TripCount {
    /// What a loop is taken to run where its bounds are data.
    const TRIPS: u64 = 32;
    let known = |v: ValueId| program.literal(v).is_some() || !inside.contains(&v);
    match stmt {
        Stmt::Loop(l) => match l.kind {
            LoopKind::For { from, to, .. } if known(from) && known(to) => TripCount::Between(from, to),
            _ => TripCount::Guessed(TRIPS),
        },
        _ => TripCount::Once,
    }
}

/// How much an iteration computes, where it needs no look at the program's values.
pub(crate) fn work_on_entry(program: &Program, par: &Par) -> Option<Work> {
    let mut loops = false;
    walk(&par.body, &mut |stmt| loops |= matches!(stmt, Stmt::Loop(_)));
    (!loops).then(|| work(program, &BTreeSet::new(), &par.body))
}

/// Is an iteration so short that what the loop itself does counts beside it?
pub(crate) fn is_light(program: &Program, par: &Par) -> bool {
    /// Statements of a short iteration.
    const FEW: usize = 64;
    let mut statements = 0;
    walk(&par.body, &mut |_| statements += 1);
    statements <= FEW && is_arithmetic(program, par)
}

/// Does an iteration only load, compute without functions, and store, so that what counts is how fast elements come and go?
pub(crate) fn is_arithmetic(program: &Program, par: &Par) -> bool {
    let mut arithmetic = true;
    walk(&par.body, &mut |stmt| {
        arithmetic &= match stmt {
            Stmt::Let(v) => !matches!(program.op(*v), Op::Math(..) | Op::Rand(..)),
            stmt => !matches!(stmt, Stmt::Loop(_) | Stmt::If(_)),
        };
    });
    arithmetic
}

/// Do lanes side by side combine into shared elements in the order of iterations? They do where one statement combines, once
/// per iteration, and with those that are in order by lanes.
pub(crate) fn keeps_order(facts: &ParFacts, par: &Par, by_lanes: &BTreeSet<ArrayId>) -> bool {
    let scattered = |stmt: &Stmt| match stmt {
        Stmt::Update(_, s) if facts.of(s) == Sharing::Scatter && !by_lanes.contains(&s.array) => {
            Some(s.array)
        }
        _ => None,
    };
    let (mut seen, mut fine) = (BTreeSet::new(), true);
    walk(&par.body, &mut |stmt| {
        fine &= scattered(stmt).is_none_or(|array| seen.insert(array));
        if let Stmt::Loop(l) = stmt {
            walk(&l.body, &mut |inner| fine &= scattered(inner).is_none());
        }
    });
    fine
}

/// How many rows a thread of a GPU takes at once: neighbouring rows share what they load, and loads of one need not wait for
/// those of the other, as long as there are registers for both.
pub(crate) fn rows_together(program: &Program, par: &Par) -> usize {
    /// What two iterations may load.
    const FEW: usize = 9;
    let (mut loads, mut simple) = (0, par.ranges.len() > 1);
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => match program.op(*v) {
            Op::Load(..) => loads += 1,
            Op::Math(..) | Op::Rand(..) => simple = false,
            _ => {}
        },
        Stmt::Update(..) => loads += 1,
        Stmt::Loop(_) | Stmt::Claim(_) => simple = false,
        _ => {}
    });
    if simple && loads <= FEW { 2 } else { 1 }
}

/// How many iterations of a lane of a leaf are on their way at a time.
pub(crate) fn at_once_in_lane(program: &Program, par: &Par) -> usize {
    /// What they may load together.
    const LOADS: usize = 16;
    let (mut loads, mut simple) = (1, true);
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) if matches!(program.op(*v), Op::Load(..)) => loads += 1,
        Stmt::Loop(_) | Stmt::Claim(_) => simple = false,
        _ => {}
    });
    if simple { (LOADS / loads).clamp(1, LOADS / 2) } else { 1 }
}

/// The values and locals of a parallel loop, its variables included.
pub(crate) fn all_values(par: &Par) -> (BTreeSet<ValueId>, BTreeSet<LocalId>) {
    let mut values: BTreeSet<_> = par.ranges.iter().map(|r| r.var).collect();
    let mut locals = BTreeSet::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(values.insert(*v)),
        Stmt::Declare(local, _) => drop(locals.insert(*local)),
        _ => {}
    });
    (values, locals)
}
