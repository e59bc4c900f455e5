//! What is a lawful nest. Input: a nest; output: the first rule that it breaks.
//!
//! 1. Threads share the outermost loop alone.
//! 2. A loop over rows has a row as its body, unless it shares them; a row stands nowhere else.
//! 3. The loops over the interval of a row take as many iterations at a time as their bodies are for, and are there alone.
//! 4. Terms are combined in leaves: a nest goes through them where it has reductions, and nowhere else. A vector of terms is a part
//!    of the lanes of a leaf, and all of them are in one step.
//! 5. Rows are taken as one where there are several ranges.
//! 6. The label for faults stands behind the loops, once.
//! 7. Where threads note terms in buckets there are no leaves, and the nest has no other loops.
//! 8. Several rows are taken together where there are several ranges and no leaves, in vectors alone.
//! 9. Rows are proved where there are several ranges and no leaves. Their ends are in vectors of as many lanes as the interval.
//! 10. Vectors fall back to single iterations only where there are no leaves, and rows are neither proved nor taken together.

use std::fmt;

use ebbtide_ir::leaf::LANES;

use super::{Buckets, First, For, Interiors, Kind, Nest, Node, Over};

/// Why a nest is not lawful: the number of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub usize);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of nests", self.0)
    }
}

/// Is the nest lawful?
pub(crate) fn verify(nest: &Nest) -> Result<(), Broken> {
    if let Some(Buckets { row, .. }) = &nest.buckets {
        holds(nest.body.is_empty() && nest.reductions.is_empty(), 7)?;
        holds(row.together.is_none(), 8)?;
        holds(row.proved.is_none(), 9)?;
        return row.inside.iter().try_for_each(|l| interior(&row.inside, l, false));
    }
    let [Node::For(shares), Node::Label(_)] = &nest.body[..] else { return Err(Broken(6)) };
    let sums = !nest.reductions.is_empty();
    holds(matches!(shares.kind, Kind::Threads(_) | Kind::Seq), 1)?;
    match shares.over {
        Over::Leaves | Over::Terms => holds(sums, 4)?,
        Over::Rows(Interiors::OfEach) | Over::Columns { .. } => holds(!sums, 4)?,
        _ => return Err(Broken(2)),
    }
    let [Node::For(rows)] = &shares.body[..] else { return Err(Broken(2)) };
    holds(rows.kind == Kind::Seq, 1)?;
    let (Over::Rows(interiors), [Node::Row(row)]) = (&rows.over, &rows.body[..]) else {
        return Err(Broken(2));
    };
    if let Interiors::AtCornersOrAsOne(_) = interiors {
        holds(nest.ranges.len() > 1 && !sums, 5)?;
    }
    if let Some(together) = &row.together {
        holds(nest.ranges.len() > 1 && !sums && together.rows > 1, 8)?;
        holds(together.inside.iter().all(|l| matches!(l.kind, Kind::Lanes(_))), 8)?;
        together.inside.iter().try_for_each(|l| interior(&together.inside, l, sums))?;
    }
    holds(!row.falls_back() || !sums && row.proved.is_none() && row.together.is_none(), 10)?;
    if let Some(proved) = &row.proved {
        holds(nest.ranges.len() > 1 && !sums, 9)?;
        if let Some(ends) = &proved.ends {
            holds(row.inside.iter().all(|l| l.kind == Kind::Lanes(ends.lanes)), 9)?;
        }
    }
    row.inside.iter().try_for_each(|l| interior(&row.inside, l, sums))
}

fn holds(condition: bool, rule: usize) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken(rule)) }
}

/// One of the loops over the interval of a row.
fn interior(inside: &[For], l: &For, sums: bool) -> Result<(), Broken> {
    let lanes = match l.kind {
        Kind::Seq => 1,
        Kind::Lanes(lanes) => lanes,
        Kind::Threads(_) => return Err(Broken(1)),
    };
    let mut taken = 0;
    for node in &l.body {
        let Node::Iterations(it) = node else { return Err(Broken(3)) };
        taken += match it.first {
            First::At(first) => {
                holds(first == taken, 3)?;
                lanes
            }
            First::Sides(sides) => sides * lanes,
        };
    }
    match l.over {
        Over::Interior { step, .. } => {
            holds(step == taken, 3)?;
            holds(!sums || l.kind == Kind::Seq || step == LANES, 4)
        }
        // Single vectors begin where it ends.
        Over::Peeled { least, .. } => {
            let behind = inside.get(1).map(|l| &l.over);
            let first = inside.first().is_some_and(|first| std::ptr::eq(first, l));
            let single = matches!(behind, Some(Over::Interior { step, .. }) if *step == lanes);
            holds(first && single && taken == lanes && least >= lanes && !sums, 3)
        }
        // What is left is less than a vector only behind a loop over single vectors.
        Over::Tail => {
            let before =
                inside.iter().any(|l| matches!(l.over, Over::Interior { step, .. } if step == lanes));
            holds(before && taken == lanes && !sums, 3)
        }
        _ => Err(Broken(3)),
    }
}
