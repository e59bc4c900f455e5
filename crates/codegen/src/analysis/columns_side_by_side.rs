//! Which parallel loops take the columns of a short row together, where several threads take an iteration. Input: a loop whose iterations
//! have sums; output: how many columns stand side by side, what differs between them, and the conditions that are alike in them.
//!
//! The forces on a body are three sums over the same distances: `for (i, k) in par(0..n, 0..3)`. Columns side by side compute once what
//! does not depend on `k`. Each sum is the one that it is column by column, so this changes nothing in its bits.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Binary, Block, Op, Par, Program, Stmt, Type, ValueId, evaluate, walk};

use crate::analysis::boundary_conditions::FarFromBoundaries;
use crate::analysis::varying::Varying;

/// The most columns of a short row: each has its sums in registers.
const MOST: i64 = 4;

/// How columns stand side by side.
pub(crate) struct ColumnsSideBySide {
    pub columns: usize,
    /// Do all rows have as many, whatever the arrays are?
    pub always: bool,
    /// What differs between them.
    pub between: Varying,
    /// What conditions are in all of them.
    pub decided: FarFromBoundaries,
}

/// How many columns a loop takes at a time.
pub(crate) fn columns_side_by_side(program: &Program, par: &Par) -> Option<ColumnsSideBySide> {
    let [_, .., row] = &par.ranges[..] else { return None };
    let number = |v: ValueId| program.literal(v).and_then(|literal| literal.to_i64());
    let from = number(row.from)?;
    let known = number(row.to).map(|to| to - from);
    // Where an array says how long a row is, a comparison may say how long it is meant to be.
    let mut meant = 0;
    walk(&par.body, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Compare(_, a, b) = program.op(*v)
            && *a == row.var
            && let Some(to) = number(*b)
        {
            meant = meant.max(to - from);
        }
    });
    let columns = known.unwrap_or(meant);
    if !(2..=MOST).contains(&columns) {
        return None;
    }
    let between = Varying::of(program, par, &BTreeSet::new());
    let mut sums = Vec::new();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt
            && !l.sums.is_empty()
        {
            sums.push(&l.body);
        }
    });
    // Fewer threads take as many sums: that pays where half of the work is done once instead.
    is_mostly_shared(program, &sums, &between).then(|| ColumnsSideBySide {
        columns: columns as usize,
        always: known.is_some(),
        decided: decided(program, par, from..from + columns),
        between,
    })
}

/// Is most of the work of statements done once, where they stand side by side for columns between which this differs?
fn is_mostly_shared(program: &Program, blocks: &[&Block], between: &Varying) -> bool {
    // What makes a difference: a function or two divisions.
    const MUCH: u32 = 16;
    let (mut alike, mut own) = (0, 0);
    for block in blocks {
        walk(block, &mut |stmt| {
            if let Stmt::Let(v) = stmt {
                *if between.values.contains(v) { &mut own } else { &mut alike } += work(program, *v);
            }
        });
    }
    alike > own && alike >= MUCH
}

/// About how many instructions compute a value.
fn work(program: &Program, v: ValueId) -> u32 {
    match program.op(v) {
        Op::Math(..) | Op::Rand(..) => 16,
        Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, ..) => 8,
        Op::Literal(_) | Op::Get(_) => 0,
        _ => 1,
    }
}

/// The conditions that are the same in all of these columns, as far as that is known from the number of a column.
fn decided(program: &Program, par: &Par, columns: std::ops::Range<i64>) -> FarFromBoundaries {
    let Some(row) = par.ranges.last() else { return FarFromBoundaries::new() };
    let mut found: Option<BTreeMap<ValueId, u64>> = None;
    for column in columns {
        let mut known = BTreeMap::from([(row.var, column as u64)]);
        walk(&par.body, &mut |stmt| {
            let Stmt::Let(v) = stmt else { return };
            let value = |o: ValueId| known.get(&o).copied().or_else(|| Some(program.literal(o)?.bits()));
            let mut operands = program.op(*v).operands().peekable();
            // Indices that are computed may be none.
            if program.ty(*v) == Type::Bool
                && program.op(*v).is_pure()
                && operands.peek().is_some()
                && operands.all(|o| value(o).is_some())
                && let Some(Ok(bits)) = evaluate::evaluate(program, *v, |o| value(o).unwrap_or_default())
            {
                known.insert(*v, bits);
            }
        });
        match &mut found {
            None => found = Some(known),
            Some(found) => found.retain(|v, bits| known.get(v) == Some(bits)),
        }
    }
    let mut decided = FarFromBoundaries::new();
    walk(&par.body, &mut |stmt| {
        if let Stmt::If(branch) = stmt
            && let Some(bits) = found.as_ref().and_then(|found| found.get(&branch.condition))
        {
            decided.insert(branch.condition, *bits != 0);
        }
    });
    decided
}
