//! How the iterations of a loop inside a parallel body find what the inner iterations before them left in locals.
//!
//! Where bounds are sums of what is known before the program starts and of variables of loops around, each inner iteration
//! keeps what it finds: a tape of the body, with a place for each inner iteration of each iteration. Elsewhere (`while`,
//! `break`, bounds that are data) there are [`SLOTS`] places. The inner iterations are cut into at most as many pieces, of at least
//! as many inner iterations, and what a piece finds is kept; then piece after piece, the last first, is run once more in the same
//! way, cut into as many pieces again. Up to `SLOTS` inner iterations are one piece, which is run once more before they are reversed;
//! up to `SLOTS²` are run twice; beyond, the smallest pieces have more than one inner iteration, and each inner iteration of them
//! is reached from the beginning of its piece.

use std::collections::HashMap;

use ebbtide_ir::{ArrayId, Binary, Branch, Compare, Indices, LocalId, Loop, LoopKind, Stmt, Type, ValueId};

use super::Task;
use crate::analysis::iteration_number::{Level, Step, has_few_iterations};
use crate::error::Error;
use crate::normalize::early::early;
use crate::plan::scratch_arrays::{self, Domain, Places, ScratchArrays, Tapes};
use crate::writer::Writer;

/// The places that a loop of unknown length has on each of two levels.
const SLOTS: i64 = 32;

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

/// How the inner iterations of a loop find what earlier ones left.
#[derive(Clone)]
pub(super) enum Replay {
    /// Nothing is left.
    Nothing,
    /// Each has kept it.
    Tape(Tape),
    /// On two levels.
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
        let iterations = iterations.unwrap_or(Places::Slots(SLOTS));
        let once = self.depth == 0 && iterations != Places::Slots(SLOTS);
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
            Places::Slots(_) => match (tape(&iterations), tape(&iterations)) {
                (Some(coarse), Some(fine)) => Replay::Slots([coarse, fine]),
                _ => Replay::Rerun,
            },
            _ => tape(&iterations).map_or(Replay::Rerun, Replay::Tape),
        };
        self.replays.insert(l.id, replay.clone());
        replay
    }

    /// Where each inner iteration of a loop keeps what it finds.
    pub(super) fn tape(&mut self, w: &mut Writer, l: &Loop) -> Tape {
        match self.touches_active(&l.body).then(|| self.replay(w, l)) {
            Some(Replay::Tape(tape)) => tape,
            _ => Tape::default(),
        }
    }

    /// Where an inner iteration of a loop, or the slot of this number, has its place on a tape.
    fn tape_index(&mut self, w: &mut Writer, tape: &Tape, at: (Option<ValueId>, ValueId)) -> Option<Indices> {
        match tape.places.as_ref()? {
            Places::Slots(_) | Places::One => self.store.as_ref()?.index(at.1),
            numbered => self.place(w, &numbered.clone(), Some(at)),
        }
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

    /// Takes the inner iterations of a loop backwards, piece by piece.
    pub(super) fn reverse_segments(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (var, from, to): (Option<ValueId>, ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        [coarse, fine]: &[Tape; 2],
    ) -> Result<(), Error> {
        let all = w.sub(to, from);
        let (least, slots) = (pieces(w, all), w.index(SLOTS));
        let piece = w.binary(Binary::Max, least, slots);
        let count = rounded_up(w, all, piece);
        // Behind the beginning of the last piece nothing is kept.
        let covered = w.mul(count, piece);
        let last = w.sub(covered, piece);
        let (last, one) = (w.add(from, last), w.index(1));
        let behind = w.add(last, one);
        self.run_keeping(w, l, (from, behind, piece), entry, coarse)?;
        let (zero, name) = (w.index(0), "piece".to_string());
        let back = w.loop_var("piece_back");
        w.begin();
        let number = last_first(w, zero, count, back, name);
        let skipped = w.mul(number, piece);
        let start = w.add(from, skipped);
        let beyond = w.add(start, piece);
        let end = w.binary(Binary::Min, beyond, to);
        let mut at_start = entry.clone();
        self.recall(w, coarse, (None, number), &mut at_start);
        let part = pieces(w, piece);
        self.run_keeping(w, l, (start, end, part), &at_start, fine)?;
        let (name, iteration_back) = self.backwards(w, var);
        w.begin();
        let iteration = last_first(w, start, end, iteration_back, name);
        let since = w.sub(iteration, start);
        let number = w.div(since, part);
        let skipped = w.mul(number, part);
        let first = w.add(start, skipped);
        let mut before = entry.clone();
        self.recall(w, fine, (None, number), &mut before);
        let outer = self.enter(w, &before);
        let (saved, outer_partial) = (self.map.clone(), std::mem::replace(&mut self.partial, true));
        self.forward_iterations(w, l, (first, iteration), Vec::new(), |_, _, _| {})?;
        (self.map, self.partial) = (saved, outer_partial);
        self.map.extend(var.map(|var| (var, iteration)));
        self.within(l, iteration, |this| this.reverse(w, &l.body))?;
        self.locals = outer;
        let body = w.end();
        let (id, kind) = (w.new_loop(), LoopKind::For { var: iteration_back, from: start, to: end });
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        let body = w.end();
        let (id, kind) = (w.new_loop(), LoopKind::For { var: back, from: zero, to: count });
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        Ok(())
    }

    /// Runs inner iterations and keeps what the first one of each piece finds.
    fn run_keeping(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (from, to, piece): (ValueId, ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        tape: &Tape,
    ) -> Result<(), Error> {
        let outer = self.enter(w, entry);
        let (saved, partial) = (self.map.clone(), std::mem::replace(&mut self.partial, true));
        self.forward_iterations(w, l, (from, to), Vec::new(), |this, w, iteration| {
            let since = w.sub(iteration, from);
            let (rest, zero) = (w.binary(Binary::Rem, since, piece), w.index(0));
            let condition = w.compare(Compare::Eq, rest, zero);
            w.begin();
            let place = w.div(since, piece);
            this.keep(w, tape, (None, place));
            let then = w.end();
            w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
        })?;
        (self.map, self.partial) = (saved, partial);
        self.locals = outer;
        Ok(())
    }
}

/// The length of the pieces that this many inner iterations are cut into: at most [`SLOTS`] of them.
fn pieces(w: &mut Writer, iterations: ValueId) -> ValueId {
    let slots = w.index(SLOTS);
    let length = rounded_up(w, iterations, slots);
    let one = w.index(1);
    w.binary(Binary::Max, length, one)
}

/// `a / b`, rounded up, for `b > 0`; not above zero where `a` is not.
fn rounded_up(w: &mut Writer, a: ValueId, b: ValueId) -> ValueId {
    let one = w.index(1);
    let more = w.sub(b, one);
    let sum = w.add(a, more);
    w.div(sum, b)
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
