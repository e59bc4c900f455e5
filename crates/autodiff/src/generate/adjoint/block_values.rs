//! Program-level values that only their own block uses: their cotangents are values of the block that reverses it, and need
//! no memory.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Op, Program, Stmt, ValueId, walk};

use super::AdjointBuilder;
use crate::analysis::activity::Activity;
use crate::writer::Writer;

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

impl AdjointBuilder<'_> {
    /// Adds to the cotangent of a program-level value.
    pub(crate) fn contribute(&mut self, w: &mut Writer, v: ValueId, flowing: ValueId) {
        if self.block_values.contains(&v) {
            let sum = match self.block_bars.get(&v).copied() {
                Some(old) => w.add_bars(old, flowing),
                None => flowing,
            };
            self.block_bars.insert(v, sum);
        } else if let Some(target) = self.shadows.values.get(&v).copied() {
            w.accumulate(target, Writer::no_index(), flowing, None);
        }
    }

    /// Does anything flow through the value?
    pub(crate) fn is_active(&self, v: ValueId) -> bool {
        self.block_values.contains(&v) || self.shadows.values.contains_key(&v)
    }

    /// The cotangent of a program-level value, which is zero from now on; `None` where nothing flows to it.
    pub(crate) fn take_cotangent(&mut self, w: &mut Writer, v: ValueId) -> Option<ValueId> {
        if self.block_values.contains(&v) {
            return self.block_bars.remove(&v);
        }
        let shadow = self.shadows.values.get(&v).copied()?;
        let bar = w.load(shadow, Writer::no_index(), None);
        w.mask(bar);
        let zero = w.real(self.source.ty(v), 0.0);
        w.store(shadow, Writer::no_index(), zero, None);
        Some(bar)
    }
}
