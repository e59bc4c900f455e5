//! What inner loops leave in locals, kept for when they would be run again.
//!
//! Before an inner iteration of a loop is reversed, it is run once more, and the loops in it with it; so a loop three deep runs
//! once for each loop around it. What a loop leaves is in a few locals: the inner iterations that run it keep these, each in a
//! place of its own, and the inner iterations that would run it again read them. The loop must leave nothing else: then its own
//! inner iterations need nothing of its earlier run either.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Block, LocalId, Loop, LoopId, LoopKind, Stmt, Type, walk};

use super::Task;
use super::replay::{Replay, Written};
use crate::analysis::iteration_number::{Step, has_few_iterations};
use crate::plan::scratch_arrays::Places;
use crate::writer::Writer;

/// Where inner iterations keep what a loop in them left.
#[derive(Clone, Debug)]
pub(super) struct Results {
    locals: Vec<(LocalId, ArrayId)>,
    places: Places,
}

/// The loops of a body that stand inside of two others or more, where all of these count.
pub(super) fn nested_in_counted_loops(body: &Block) -> BTreeSet<LoopId> {
    let mut found = BTreeSet::new();
    let mut work: Vec<(&Block, usize)> = vec![(body, 0)];
    while let Some((block, around)) = work.pop() {
        for stmt in block {
            match stmt {
                Stmt::Loop(l) => {
                    found.extend((around > 1).then_some(l.id));
                    work.extend(is_counted(l).then_some((&l.body, around + 1)));
                }
                _ => work.extend(stmt.blocks().map(|block| (block, around))),
            }
        }
    }
    found
}

fn is_counted(l: &Loop) -> bool {
    matches!(l.kind, LoopKind::For { .. }) && l.until.is_none()
}

impl Task<'_> {
    /// Keeps what a loop left, where it has just been run in inner iterations that are reversed later, and these in others.
    pub(super) fn keep_results(&mut self, w: &mut Writer, l: &Loop) {
        let wanted = self.depth > 0 && !self.partial && self.nested.contains(&l.id);
        if !wanted || self.results.contains_key(&l.id) {
            return;
        }
        let Some(results) = self.places_of_results(w, l) else { return };
        if let Some(index) = self.place(w, &results.places, None) {
            for (local, array) in &results.locals {
                let held = w.get(self.locals.get(local).copied().unwrap_or(*local));
                let held = if w.ty(held) == Type::Index { w.cast(held, Type::I64) } else { held };
                w.store(*array, index, held, None);
            }
            self.results.insert(l.id, results);
        }
    }

    /// Sets locals to what a loop left when it ran before; says whether it did.
    pub(super) fn recall_results(&mut self, w: &mut Writer, l: &Loop) -> bool {
        let kept = self.results.get(&l.id).filter(|_| !self.partial);
        let Some(results) = kept.cloned() else { return false };
        let Some(index) = self.place(w, &results.places, None) else { return false };
        for (local, array) in &results.locals {
            let held = w.load(*array, index, None);
            let index_type = self.source.locals[local.index()].ty == Type::Index;
            let held = if index_type { w.cast(held, Type::Index) } else { held };
            w.push(Stmt::Set(self.locals.get(local).copied().unwrap_or(*local), held));
        }
        true
    }

    /// Places for what a loop leaves, one for each inner iteration of the loops around it.
    fn places_of_results(&mut self, w: &mut Writer, l: &Loop) -> Option<Results> {
        if !is_counted(l) || self.window.is_some() || has_few_iterations(self.source, l) {
            return None;
        }
        let (mut set, mut declared, mut stores) = (Vec::new(), Vec::new(), false);
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Set(local, _) if !set.contains(local) => set.push(*local),
            Stmt::Declare(local, _) => declared.push(*local),
            Stmt::Store(s) | Stmt::Update(_, s) => stores |= self.copies.contains_key(&s.array),
            _ => {}
        });
        set.retain(|local| !declared.contains(local) && self.locals.contains_key(local));
        if stores || set.is_empty() || !matches!(self.replay(w, l), Replay::Nothing) {
            return None;
        }
        let steps: Vec<Step> = self.around.iter().map(|around| Step::Numbered(around.level)).collect();
        let places = self.places(&steps)?;
        let store = self.store.as_mut().filter(|store| store.domain.has_room(&places))?;
        let array = |local: &LocalId| {
            (*local, store.array(w, self.source.locals[local.index()].ty, &places, Written::Once))
        };
        let locals = set.iter().map(array).collect();
        Some(Results { locals, places })
    }
}
