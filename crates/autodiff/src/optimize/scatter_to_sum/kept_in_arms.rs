//! What arms of branches hand on to sums over preimages: see [`super::arms`].

use std::collections::BTreeSet;

use ebbtide_ir::{Literal, ValueId};

use super::Splitter;
use super::arms::{Path, arms_around};
use super::handed::{Copied, Handed, Repeats, Stores, Way};
use super::slice::{Wanted, read_by};
use crate::plan::scratch_arrays::ScratchArrays;
use crate::writer::Writer;
use crate::writer::prune::prune;

impl Splitter<'_> {
    /// Lets the arms around updates hand on what they computed, where loops in them would be repeated often.
    pub(super) fn way_in_arms<'b>(
        &self,
        w: &Writer,
        wanted: &Wanted<'b>,
        vars: &BTreeSet<ValueId>,
        whole: &Way<'b>,
    ) -> Option<Way<'b>> {
        let stays = self.domain.is_some() && whole.read.is_disjoint(&self.written);
        if !stays || whole.repeats(&w.program) != Repeats::Often {
            return None;
        }
        let (arms, block) = arms_around(wanted);
        let place = arms.last()?.place;
        let block = prune(&w.program, block);
        let read = read_by(&w.program, &block);
        let mut way = Way { copied: Vec::new(), read, chain: Vec::new(), arms };
        let mut copied = Copied { block, handed: BTreeSet::new(), place };
        copied.handed = self.handed(w, (&mut way, &copied), vars, wanted.at)?;
        way.copied.push(copied);
        let better = way.repeats(&w.program) < Repeats::Often && way.read.is_disjoint(&self.written);
        better.then_some(way)
    }

    /// Lets an arm keep something that is handed on. An iteration that takes another arm hands on a zero, which nothing uses.
    pub(super) fn keep_in_arm(
        &mut self,
        w: &mut Writer,
        kept: &mut ScratchArrays,
        h: Handed,
        path: Path,
        stores: &mut Stores,
    ) -> Option<()> {
        if self.holders.contains_key(&h) {
            return Some(());
        }
        let array = self.new_holder(w, kept, h)?;
        let stored = |w: &mut Writer, value: &dyn Fn(&mut Writer) -> ValueId| {
            w.begin();
            let value = value(w);
            let own = self.own_index(w, |v| v);
            own.into_iter().for_each(|own| w.store(array, own, value, None));
            let block = w.end();
            own.map(|_| block)
        };
        let ty = h.ty(w);
        stores.before.extend(stored(w, &|w| w.literal(Literal::from_bits(ty, 0)))?);
        stores.in_arms.entry(path).or_default().extend(stored(w, &|w| h.value(w))?);
        Some(())
    }
}
