//! Tapes of elements: what a parallel loop overwrites whose number of iterations only the run knows.
//!
//! There is a tape for each type, and an array of rank 0 that says how many elements it holds. Loops put strips there, one behind
//! the other, and the reverse half takes them back in the opposite order. The driver guesses how much room there must be; a run that
//! meets the end is begun again with more.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, Binary, Op, Par, Range, Role, Stmt, Store, Type, ValueId, is_zero};

use super::AdjointBuilder;
use super::section_places::{Kept, Section, Strip};
use crate::writer::Writer;

/// Does a loop put its strips on the tapes, or take them back?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Push,
    Pop,
}

impl AdjointBuilder<'_> {
    /// Makes room for what a parallel loop overwrites.
    pub(super) fn push_strips(&mut self, w: &mut Writer, par: &Par) -> Vec<Section> {
        let ranges: Vec<(ValueId, ValueId)> = par.ranges.iter().map(|r| (r.from, r.to)).collect();
        self.strips(w, par, &ranges, Way::Push)
    }

    /// Takes back what a parallel loop overwrote.
    pub(super) fn pop_strips(&mut self, w: &mut Writer, par: &Par) -> Vec<Section> {
        let known = |r: &Range| (self.known(r.from), self.known(r.to));
        let ranges: Vec<(ValueId, ValueId)> = par.ranges.iter().map(known).collect();
        self.strips(w, par, &ranges, Way::Pop)
    }

    fn strips(&mut self, w: &mut Writer, par: &Par, ranges: &[(ValueId, ValueId)], way: Way) -> Vec<Section> {
        let mut stores: BTreeMap<Type, Vec<Store>> = BTreeMap::new();
        for store in self.plan.strips(par) {
            stores.entry(self.source.array(store.array).ty).or_default().push(store.clone());
        }
        if stores.is_empty() {
            return Vec::new();
        }
        let extent = |w: &mut Writer, (from, to): (ValueId, ValueId)| match is_zero(&w.program, from) {
            true => to,
            false => w.sub(to, from),
        };
        let extents: Vec<ValueId> = ranges.iter().map(|range| extent(w, *range)).collect();
        let (zero, mut iterations) = (w.index(0), w.index(1));
        for extent in &extents {
            let some = w.binary(Binary::Max, *extent, zero);
            iterations = w.mul(iterations, some);
        }
        let mut sections = Vec::new();
        for (ty, stores) in stores {
            let (tape, top) = self.tape_of_elements(w, ty);
            let each = stores.len() as i64;
            let factor = w.index(each);
            let count = w.mul(iterations, factor);
            let held = w.load(top, Writer::no_index(), None);
            let held = w.value(Op::Cast(held), Type::Index);
            let (at, after) = match way {
                Way::Push => (held, w.add(held, count)),
                Way::Pop => {
                    let at = w.sub(held, count);
                    (at, at)
                }
            };
            let after = w.cast(after, Type::I64);
            w.store(top, Writer::no_index(), after, None);
            for (number, store) in stores.into_iter().enumerate() {
                let strip = Strip { tape, at, each, number: number as i64, extents: extents.clone() };
                sections.push(Section { store, kept: Kept::Strip(strip) });
            }
        }
        sections
    }

    /// The tape of elements of this type, and the array that says how many it holds.
    fn tape_of_elements(&mut self, w: &mut Writer, ty: Type) -> (ArrayId, ArrayId) {
        *self.tapes_of_elements.entry(ty).or_insert_with(|| {
            let name = w.free_name(format!("held_{ty}"));
            let top = w.array(name, Type::I64, 0, Role::Temp(Vec::new()));
            let name = w.free_name(format!("tape_{ty}"));
            let tape = w.array(name, ty, 1, Role::Tape(top));
            w.program.undefined.insert(tape);
            (tape, top)
        })
    }

    /// The declarations of the tapes of elements, which are empty then.
    pub(super) fn declared_tapes(&self) -> impl Iterator<Item = Stmt> {
        self.tapes_of_elements.values().flat_map(|(tape, top)| [Stmt::Temp(*top), Stmt::Temp(*tape)])
    }
}
