//! Loops of unknown length inside a parallel body, taken backwards.
//!
//! Their first inner iterations have kept what they found. Where those are all, each is reversed from there. A *long* loop has more:
//! its inner iterations are cut into at most [`SLOTS`] pieces, of at least as many inner iterations as there are places, and what
//! the first of each piece finds is kept on a second tape. When an inner iteration is reversed that the places do not hold, its piece is
//! run once more from there, up to it, and as many as there are places, it among them, keep what they find.

use std::collections::HashMap;

use ebbtide_ir::{Binary, Branch, Compare, LocalId, Loop, LoopKind, Stmt, ValueId};

use super::Task;
use super::replay::{SLOTS, Tape};
use crate::error::Error;
use crate::writer::Writer;

/// How a long loop is cut, as it is run. Inner iterations are numbered from zero.
struct Cut {
    is_long: ValueId,
    places: ValueId,
    /// The number of inner iterations of a piece.
    piece: LocalId,
    /// The first inner iteration that the places hold.
    first: LocalId,
}

impl Task<'_> {
    /// Takes the inner iterations of a loop backwards.
    pub(super) fn reverse_segments(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (var, from, to): (Option<ValueId>, ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        tapes: &[Tape; 2],
    ) -> Result<(), Error> {
        let all = w.sub(to, from);
        let cut = self.cut(w, l, (from, all), entry, tapes)?;
        let (zero, one) = (w.index(0), w.index(1));
        let last = w.sub(all, one);
        let (name, back) = self.backwards(w, var);
        w.begin();
        let number = w.sub(last, back);
        let iteration = w.add(from, number);
        w.program.values[iteration.index()].name = Some(name);
        let place = w.local("place", number);
        w.begin();
        self.bring(w, l, (from, number), entry, (tapes, &cut))?;
        let first = w.get(cut.first);
        let since = w.sub(number, first);
        w.push(Stmt::Set(place, since));
        end_if(w, cut.is_long);
        let mut before = entry.clone();
        let place = w.get(place);
        self.recall(w, &tapes[1], (None, place), &mut before);
        let outer = self.enter(w, &before);
        self.map.extend(var.map(|var| (var, iteration)));
        self.within(l, iteration, |this| this.reverse(w, &l.body))?;
        self.locals = outer;
        let body = w.end();
        let (id, kind) = (w.new_loop(), LoopKind::For { var: back, from: zero, to: all });
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        Ok(())
    }

    /// Cuts a long loop, and keeps what its pieces find.
    fn cut(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (from, all): (ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        [pieces, places]: &[Tape; 2],
    ) -> Result<Cut, Error> {
        let Some(places) = places.capacity(w) else {
            return Err(self.unsupported("a loop of unknown length without places"));
        };
        let (zero, one) = (w.index(0), w.index(1));
        let is_long = w.compare(Compare::Gt, all, places);
        let [piece, first] = ["piece", "first"].map(|name| w.local(name, zero));
        w.begin();
        let slots = w.index(SLOTS);
        let least = rounded_up(w, all, slots);
        let length = w.binary(Binary::Max, least, places);
        w.push(Stmt::Set(piece, length));
        // None is there yet.
        w.push(Stmt::Set(first, all));
        let last = w.sub(all, one);
        let rest = w.binary(Binary::Rem, last, length);
        let start_of_last = w.sub(last, rest);
        let to = w.add(from, start_of_last);
        let [place, wait] = ["place", "wait"].map(|name| w.local(name, zero));
        self.run_keeping(w, l, (from, to), entry, |this, w, _| {
            let waiting = w.get(wait);
            let begins = w.compare(Compare::Eq, waiting, zero);
            w.begin();
            let here = w.get(place);
            this.keep(w, pieces, (None, here));
            let next = w.add(here, one);
            w.push(Stmt::Set(place, next));
            w.push(Stmt::Set(wait, length));
            end_if(w, begins);
            let waiting = w.get(wait);
            let less = w.sub(waiting, one);
            w.push(Stmt::Set(wait, less));
        })?;
        end_if(w, is_long);
        Ok(Cut { is_long, places, piece, first })
    }

    /// Has places hold an inner iteration of a long loop and those before it in its piece, as many as there are places; nothing where
    /// they do.
    fn bring(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (from, number): (ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        ([pieces, tape], cut): (&[Tape; 2], &Cut),
    ) -> Result<(), Error> {
        let first = w.get(cut.first);
        let is_before = w.compare(Compare::Lt, number, first);
        w.begin();
        let (piece, one) = (w.get(cut.piece), w.index(1));
        let place = w.div(number, piece);
        let start = w.mul(place, piece);
        let next = w.add(number, one);
        let held = w.sub(next, cut.places);
        let first = w.binary(Binary::Max, start, held);
        w.push(Stmt::Set(cut.first, first));
        let mut at_start = entry.clone();
        self.recall(w, pieces, (None, place), &mut at_start);
        let (start, first_held, last) = (w.add(from, start), w.add(from, first), w.add(from, number));
        self.run_keeping(w, l, (start, last), &at_start, |this, w, iteration| {
            let is_held = w.compare(Compare::Ge, iteration, first_held);
            w.begin();
            let place = w.sub(iteration, first_held);
            this.keep(w, tape, (None, place));
            end_if(w, is_held);
        })?;
        end_if(w, is_before);
        Ok(())
    }

    /// Runs inner iterations, the last one for what it finds.
    fn run_keeping(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (first, last): (ValueId, ValueId),
        entry: &HashMap<LocalId, ValueId>,
        keep: impl FnOnce(&mut Self, &mut Writer, ValueId),
    ) -> Result<(), Error> {
        let outer = self.enter(w, entry);
        let (saved, partial) = (self.map.clone(), std::mem::replace(&mut self.partial, true));
        let one = w.index(1);
        let end = w.add(last, one);
        self.forward_iterations(w, l, (first, end), Vec::new(), keep)?;
        (self.map, self.partial) = (saved, partial);
        self.locals = outer;
        Ok(())
    }
}

/// Ends a block that is the arm of a branch.
fn end_if(w: &mut Writer, condition: ValueId) {
    let then = w.end();
    w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
}

/// `a / b`, rounded up, for positive numbers.
fn rounded_up(w: &mut Writer, a: ValueId, b: ValueId) -> ValueId {
    let one = w.index(1);
    let more = w.sub(b, one);
    let sum = w.add(a, more);
    w.div(sum, b)
}
