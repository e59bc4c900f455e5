//! Cotangents of the values of a body, while they are summed up.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, LocalId, Stmt, ValueId, walk};

use super::Task;
use crate::writer::Writer;

/// A cotangent being summed up.
#[derive(Clone, Copy)]
pub(super) enum Cotangent {
    Value(ValueId),
    Local(LocalId),
}

impl Task<'_> {
    /// Adds to the cotangent of a source value.
    pub(super) fn contribute(&mut self, w: &mut Writer, v: ValueId, flowing: ValueId) {
        let outer = !self.inside.contains(&v);
        if !self.active(v) || (outer && !self.shadows.values.contains_key(&v)) {
            return;
        }
        match self.cotangents.get(&v).copied() {
            None => drop(self.cotangents.insert(v, Cotangent::Value(flowing))),
            Some(Cotangent::Value(old)) => {
                let sum = w.add_cotangents(old, flowing);
                self.cotangents.insert(v, Cotangent::Value(sum));
            }
            Some(Cotangent::Local(local)) => {
                let old = w.get(local);
                let sum = w.add(old, flowing);
                w.push(Stmt::Set(local, sum));
            }
        }
    }

    pub(super) fn take_bar(&mut self, w: &mut Writer, v: ValueId) -> Option<ValueId> {
        match self.cotangents.remove(&v)? {
            Cotangent::Value(value) => Some(value),
            // What was collected in branches is zero where they were not taken.
            Cotangent::Local(local) => {
                let bar = w.get(local);
                Some(w.mask(bar))
            }
        }
    }

    /// Values from outside a nested block collect their cotangents in locals while it is reversed.
    pub(super) fn prepare(&mut self, w: &mut Writer, block: &Block) {
        let (mut defined, mut used) = (BTreeSet::new(), BTreeSet::new());
        walk(block, &mut |stmt| {
            used.extend(stmt.uses());
            if let Stmt::Let(v) = stmt {
                defined.insert(*v);
                used.extend(self.source.op(*v).operands());
                used.extend(self.forwarding.forwarded.get(v));
            }
        });
        for v in used.difference(&defined).copied() {
            let reachable = self.inside.contains(&v) || self.shadows.values.contains_key(&v);
            if !self.active(v) || !reachable || matches!(self.cotangents.get(&v), Some(Cotangent::Local(_))) {
                continue;
            }
            let start = match self.cotangents.get(&v) {
                Some(Cotangent::Value(value)) => *value,
                _ => w.real(self.source.ty(v), 0.0),
            };
            let local = w.local(&format!("d_v{}", v.index()), start);
            self.cotangents.insert(v, Cotangent::Local(local));
        }
    }
}
