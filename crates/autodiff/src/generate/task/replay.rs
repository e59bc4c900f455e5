//! How the iterations of a loop inside a parallel body find what the inner iterations before them left in locals.
//!
//! Where bounds are sums of what is known before the program starts and of variables of loops around, each inner iteration
//! keeps what it finds: a tape of the body, with a place for each inner iteration of each iteration. Elsewhere (`while`,
//! `break`, bounds that are data) there are at least [`SLOTS`] places, in which the first inner iterations keep what they find: often
//! these are all. Where they are not (`segments.rs`), inner iterations are cut into at most `SLOTS` pieces.

use std::collections::HashMap;

use ebbtide_ir::{ArrayId, Branch, Compare, Indices, LocalId, Loop, Stmt, Type, ValueId};

use super::Task;
use crate::analysis::iteration_number::{Level, Step, has_few_iterations};
use crate::normalize::early::early;
use crate::plan::scratch_arrays::{self, Domain, Places, ScratchArrays, Tapes};
use crate::writer::Writer;

/// The pieces into which the inner iterations of a loop of unknown length are cut; the least number of places for what they find.
pub(super) const SLOTS: i64 = 32;

/// Where the iterations of one parallel loop keep what they find.
pub(crate) struct Storage<'a> {
    pub kept: &'a mut ScratchArrays,
    pub domain: Domain<'a>,
    /// The place of the iteration in arrays of the loop's shape.
    pub own: Vec<ValueId>,
    pub tapes: &'a mut Tapes,
}

/// Is what an inner iteration finds kept, to be read when it is reversed?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Iterations {
    Kept,
    Forgotten,
}

/// How often an iteration writes a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Once,
    Often,
}

/// An array for each local that is carried, and the places in them.
#[derive(Clone, Default)]
pub(super) struct Tape {
    arrays: Vec<(LocalId, ArrayId)>,
    places: Option<Places>,
}

impl Tape {
    /// The number of its places, where inner iterations may have none.
    pub fn capacity(&self, w: &mut Writer) -> Option<ValueId> {
        match (&self.places, self.arrays.first()) {
            (Some(Places::Share(_)), Some((_, array))) => Some(w.dim(*array, 0)),
            _ => None,
        }
    }
}

/// How the inner iterations of a loop find what earlier ones left.
#[derive(Clone)]
pub(super) enum Replay {
    /// Nothing is left.
    Nothing,
    /// Each has kept it.
    Tape(Tape),
    /// The first ones have kept it, in the second; the first is for pieces.
    Slots([Tape; 2]),
    /// From the first iteration on.
    Rerun,
}

impl Storage<'_> {
    /// An array of this type that nothing else of the loop uses.
    pub(super) fn array(&mut self, w: &mut Writer, ty: Type, places: &Places, written: Written) -> ArrayId {
        let ty = if ty == Type::Index { Type::I64 } else { ty };
        let mut number = 0;
        let array = loop {
            let array = self.kept.array(w, ty, &self.domain, places, number);
            if !self.tapes.lasting.contains(&array) && !self.tapes.passing.contains(&array) {
                break array;
            }
            number += 1;
        };
        match written {
            Written::Once => self.tapes.lasting.insert(array),
            Written::Often => self.tapes.passing.insert(array),
        };
        array
    }

    /// A window on values of this type for each iteration.
    pub(super) fn window(&mut self, w: &mut Writer, ty: Type) -> ArrayId {
        let array = self.kept.window(w, ty, &self.domain);
        self.tapes.passing.insert(array);
        array
    }

    /// The number of this iteration among all.
    pub(super) fn iteration(&self, w: &mut Writer) -> ValueId {
        let mut number = w.index(0);
        for (own, extent) in self.own.iter().zip(self.domain.extents()) {
            let extent = scratch_arrays::write(w, extent, &mut |w, v| early(self.domain.source, w, v));
            let before = w.mul(number, extent);
            number = w.add(before, *own);
        }
        number
    }

    pub(super) fn index(&self, place: ValueId) -> Option<Indices> {
        let all: Vec<ValueId> = [place].into_iter().chain(self.own.iter().copied()).collect();
        Indices::new(&all)
    }
}

impl Task<'_> {
    /// How the inner iterations of a loop find what earlier ones left: decided once.
    pub(super) fn replay(&mut self, w: &mut Writer, l: &Loop) -> Replay {
        if let Some(replay) = self.replays.get(&l.id) {
            return replay.clone();
        }
        let carried = self.carried(l);
        let iterations = Level::of(l).filter(|_| l.until.is_none()).and_then(|level| {
            let around = self.around.iter().map(|a| Step::Around(a.level));
            self.places(&around.chain([Step::Numbered(level)]).collect::<Vec<_>>())
        });
        let once = self.depth == 0 && iterations.is_some();
        let written = if once { Written::Once } else { Written::Often };
        let mut tape = |places: &Places| -> Option<Tape> {
            let store = self.store.as_mut().filter(|store| store.domain.has_room(places))?;
            let each = |local: &LocalId| {
                (*local, store.array(w, self.source.locals[local.index()].ty, places, written))
            };
            Some(Tape { arrays: carried.iter().map(each).collect(), places: Some(places.clone()) })
        };
        let replay = match &iterations {
            _ if carried.is_empty() => Replay::Nothing,
            // What is written often cannot be gathered: a few inner iterations are run again instead.
            _ if self.depth > 0 && has_few_iterations(self.source, l) => Replay::Rerun,
            None => match (tape(&Places::Slots(SLOTS)), tape(&Places::Share(SLOTS))) {
                (Some(coarse), Some(fine)) => Replay::Slots([coarse, fine]),
                _ => Replay::Rerun,
            },
            Some(iterations) => tape(iterations).map_or(Replay::Rerun, Replay::Tape),
        };
        self.replays.insert(l.id, replay.clone());
        replay
    }

    /// Where inner iterations of a loop keep what they find when it runs for the first time.
    pub(super) fn tape(&mut self, w: &mut Writer, l: &Loop) -> Tape {
        match self.touches_active(&l.body).then(|| self.replay(w, l)) {
            Some(Replay::Tape(tape) | Replay::Slots([_, tape])) => tape,
            _ => Tape::default(),
        }
    }

    /// Where an inner iteration of a loop, or the slot of this number, has its place on a tape.
    fn tape_index(&mut self, w: &mut Writer, tape: &Tape, at: (Option<ValueId>, ValueId)) -> Option<Indices> {
        match tape.places.as_ref()? {
            Places::Slots(_) | Places::Share(_) | Places::One => self.store.as_ref()?.index(at.1),
            numbered => self.place(w, &numbered.clone(), Some(at)),
        }
    }

    /// Keeps what an inner iteration of this number finds when its loop runs for the first time, where it has a place.
    pub(super) fn keep_first(
        &mut self,
        w: &mut Writer,
        tape: &Tape,
        at: (Option<ValueId>, ValueId),
        number: impl FnOnce(&mut Writer) -> ValueId,
    ) {
        let Some(places) = tape.capacity(w) else { return self.keep(w, tape, at) };
        let number = number(w);
        let condition = w.compare(Compare::Lt, number, places);
        w.begin();
        self.keep(w, tape, (None, number));
        let then = w.end();
        w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
    }

    /// Keeps what locals hold.
    pub(super) fn keep(&mut self, w: &mut Writer, tape: &Tape, at: (Option<ValueId>, ValueId)) {
        let Some(index) = self.tape_index(w, tape, at) else { return };
        for (local, array) in &tape.arrays {
            let held = w.get(self.locals.get(local).copied().unwrap_or(*local));
            let held = if w.ty(held) == Type::Index { w.cast(held, Type::I64) } else { held };
            w.store(*array, index, held, None);
        }
    }

    /// Reads what locals held.
    pub(super) fn recall(
        &mut self,
        w: &mut Writer,
        tape: &Tape,
        at: (Option<ValueId>, ValueId),
        entry: &mut HashMap<LocalId, ValueId>,
    ) {
        let Some(index) = self.tape_index(w, tape, at) else { return };
        for (local, array) in &tape.arrays {
            let held = w.load(*array, index, None);
            let ty = self.source.locals[local.index()].ty;
            let held = if ty == Type::Index { w.cast(held, Type::Index) } else { held };
            entry.insert(*local, held);
        }
    }
}

/// The inner iteration that stands in place of another when they are taken last first.
pub(super) fn last_first(w: &mut Writer, from: ValueId, to: ValueId, back: ValueId, name: String) -> ValueId {
    let sum = w.add(from, to);
    let one = w.index(1);
    let last = w.sub(sum, one);
    let iteration = w.sub(last, back);
    w.program.values[iteration.index()].name = Some(name);
    iteration
}
