//! Cotangents of program-level values: values of the block that reverses theirs where only their own block uses them, else arrays of
//! rank 0.

use ebbtide_ir::ValueId;

use super::AdjointBuilder;
use crate::writer::Writer;

impl AdjointBuilder<'_> {
    /// Adds to the cotangent of a program-level value.
    pub(crate) fn contribute(&mut self, w: &mut Writer, v: ValueId, flowing: ValueId) {
        if self.block_values.contains(&v) {
            let sum = match self.block_cotangents.get(&v).copied() {
                Some(old) => w.add_cotangents(old, flowing),
                None => flowing,
            };
            self.block_cotangents.insert(v, sum);
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
            return self.block_cotangents.remove(&v);
        }
        let shadow = self.shadows.values.get(&v).copied()?;
        let bar = w.load(shadow, Writer::no_index(), None);
        w.mask(bar);
        let zero = w.real(self.source.ty(v), 0.0);
        w.store(shadow, Writer::no_index(), zero, None);
        Some(bar)
    }
}
