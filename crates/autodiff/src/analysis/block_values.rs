//! Program-level values that only their own block uses: their cotangents are values of the block that reverses it, and need
//! no memory.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Op, Program, Stmt, ValueId, walk};

use crate::analysis::activity::Activity;

/// The active values of which all uses are operations and writes of the block that computes them.
pub(crate) fn block_values(source: &Program, activity: &Activity) -> BTreeSet<ValueId> {
    let mut all: BTreeMap<ValueId, usize> = BTreeMap::new();
    walk(&source.body, &mut |stmt| uses(source, stmt).for_each(|v| *all.entry(v).or_default() += 1));
    let mut found = BTreeSet::new();
    let mut blocks: Vec<&Block> = vec![&source.body];
    while let Some(block) = blocks.pop() {
        let mut near: BTreeMap<ValueId, usize> = BTreeMap::new();
        for stmt in block {
            if let Stmt::Let(_) | Stmt::Store(_) | Stmt::Update(..) = stmt {
                uses(source, stmt).for_each(|v| *near.entry(v).or_default() += 1);
            }
            if !matches!(stmt, Stmt::Par(_)) {
                blocks.extend(stmt.blocks());
            }
        }
        for stmt in block {
            if let Stmt::Let(v) = stmt
                && activity.values.contains(v)
                && !matches!(source.op(*v), Op::Scalar(_))
                && near.get(v) == all.get(v)
            {
                found.insert(*v);
            }
        }
    }
    found
}

fn uses(source: &Program, stmt: &Stmt) -> impl Iterator<Item = ValueId> {
    let operands = match stmt {
        Stmt::Let(v) => source.op(*v).operands().collect(),
        _ => Vec::new(),
    };
    stmt.uses().into_iter().chain(operands)
}
