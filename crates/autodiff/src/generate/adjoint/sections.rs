//! Parts of arrays on the tape: what a parallel loop overwrites of a row, a slab or a side goes there by itself.
//!
//! Each iteration puts what it overwrites into an array of the loop's shape, whose memory goes on the tape; or, where only the run
//! knows that shape, on a tape of elements ([`strips`](super::strips)). On the way back a loop of the same shape puts it in its
//! place again.

use std::collections::{BTreeMap, HashMap};

use ebbtide_ir::{After, Block, Op, Par, Push, Range, Role, Stmt, Store, Type, ValueId};

use super::AdjointBuilder;
use super::section_places::{Kept, Section};
use crate::generate::par::iterations::{own_iterations, push_own};
use crate::plan::scratch_arrays::{Domain, Places};
use crate::request::Optimisation;
use crate::writer::Writer;

impl AdjointBuilder<'_> {
    /// The parts of arrays that a loop records.
    fn sections(&mut self, w: &mut Writer, par: &Par) -> Vec<Section> {
        let stores: Vec<Store> = self.plan.sections(par).into_iter().flatten().cloned().collect();
        if stores.is_empty() {
            return Vec::new();
        }
        let Some(domain) = Domain::of(self.source, self.affines, &par.ranges) else { return Vec::new() };
        let mut numbers: BTreeMap<Type, usize> = BTreeMap::new();
        let mut sections = Vec::new();
        for store in stores {
            let ty = self.source.array(store.array).ty;
            let number = numbers.entry(ty).or_default();
            let array = self.scratch_arrays.array(w, ty, &domain, &Places::One, *number);
            *number += 1;
            sections.push(Section { store, kept: Kept::Whole(array) });
        }
        sections
    }

    /// Writes a parallel loop with its tape.
    pub(crate) fn forward_par(&mut self, w: &mut Writer, par: &Par) {
        let mut sections = self.sections(w, par);
        sections.extend(self.push_strips(w, par));
        let mut keeping = par.clone();
        if !sections.is_empty() {
            keeping.id = w.new_par();
        }
        let mut left = sections.clone();
        for stmt in std::mem::take(&mut keeping.body) {
            if let Stmt::Store(s) | Stmt::Update(_, s) = &stmt
                && let Some(at) = left.iter().position(|section| section.store.id == s.id)
            {
                let Section { kept, .. } = left.remove(at);
                let kept = w.block(|w| {
                    let old = w.load(s.array, s.index, s.site.clone());
                    if let Some((array, own)) = kept.element(w, &par.ranges) {
                        w.store(array, own, old, None);
                    }
                });
                keeping.body.extend(kept);
            }
            keeping.body.push(stmt);
        }
        self.recorder().par(w, par, keeping);
        for section in sections {
            let Kept::Whole(array) = section.kept else { continue };
            let after = match self.uses(Optimisation::TapeByExchange) {
                true => {
                    let decl = w.program.array(array).clone();
                    let old = w.array(format!("{}_old", decl.name), decl.ty, decl.rank, Role::Old(array));
                    After::Anything(old)
                }
                false => After::Same,
            };
            w.push(Stmt::Push(Push { array, after }));
        }
    }

    /// Puts what a parallel loop overwrote in its place again.
    pub(crate) fn restore_sections(&mut self, w: &mut Writer, par: &Par) {
        let mut sections = self.sections(w, par);
        for section in sections.iter().rev() {
            if let Kept::Whole(array) = section.kept {
                w.push(Stmt::Pop(array));
            }
        }
        sections.extend(self.pop_strips(w, par));
        let inside: Vec<ValueId> =
            par.body.iter().filter_map(|s| if let Stmt::Let(v) = s { Some(*v) } else { None }).collect();
        let mut map = self.env.clone();
        // A region that was run again has computed them, in a loop of its own.
        map.retain(|v, _| !inside.contains(v));
        let mut ranges = Vec::new();
        for r in &par.ranges {
            let name = self.source.value(r.var).name.clone().unwrap_or_else(|| "i".to_string());
            let range = Range { var: w.loop_var(&name), from: self.known(r.from), to: self.known(r.to) };
            map.insert(r.var, range.var);
            ranges.push(range);
        }
        let body: Block = w.block(|w| {
            // An element that an iteration writes twice held first what it held before the first write.
            for Section { store, kept } in sections.iter().rev() {
                let Some((array, own)) = kept.element(w, &ranges) else { continue };
                let old = w.load(array, own, None);
                let index = store.index.map(|v| self.again(w, v, &inside, &mut map));
                w.store(store.array, index, old, store.site.clone());
            }
        });
        if let Some(own) = own_iterations(w, (par, &self.env), ranges, body) {
            push_own(w, own);
        }
    }

    /// A value of a parallel loop, made again from its variables. The depth of recursion is that of an index.
    fn again(
        &self,
        w: &mut Writer,
        v: ValueId,
        inside: &[ValueId],
        map: &mut HashMap<ValueId, ValueId>,
    ) -> ValueId {
        match map.get(&v) {
            Some(known) => *known,
            None if !inside.contains(&v) => v,
            None => {
                let operands: Vec<ValueId> = self.source.op(v).operands().collect();
                let made: Vec<ValueId> = operands.iter().map(|o| self.again(w, *o, inside, map)).collect();
                let at = |o: ValueId| operands.iter().position(|x| *x == o).map_or(o, |k| made[k]);
                let op: Op = self.source.op(v).map(at);
                let new = w.value(op, self.source.ty(v));
                map.insert(v, new);
                new
            }
        }
    }
}
