//! Bodies that read what they wrote: they are run over a copy of the array, and what each load found is kept for the way
//! back.

use ebbtide_ir::{
    ArrayId, Block, Compare, Indices, Literal, LocalId, Loop, LoopKind, Op, Stmt, Type, ValueId, walk,
};

use super::Task;
use crate::analysis::iteration_number::{Level, Step};
use crate::error::Error;
use crate::normalize::early::early;
use crate::plan::scratch_arrays::{self, Places};
use crate::writer::{Writer, both};

/// Where a load puts what it found, for when the block around it is run again.
#[derive(Clone, Debug)]
pub(super) enum Capture {
    Local(LocalId),
    /// A place for each inner iteration of the loops around it.
    Tape(ArrayId, Places),
}

/// A loop around what is written now, and which iteration it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub level: Level,
    pub iteration: ValueId,
}

impl Task<'_> {
    /// Makes room for what the loads of copied arrays find inside of branches and loops.
    pub(super) fn make_room(&mut self, w: &mut Writer, body: &Block) -> Result<(), Error> {
        if self.copies.is_empty() {
            return Ok(());
        }
        body.iter().try_for_each(|stmt| self.make_room_inside(w, stmt, &[]))
    }

    /// Makes room inside of a statement.
    fn make_room_inside(&mut self, w: &mut Writer, stmt: &Stmt, loops: &[&Loop]) -> Result<(), Error> {
        match stmt {
            // The head of a loop has nothing that its inner iterations read.
            Stmt::Loop(l) => {
                let around: Vec<&Loop> = loops.iter().copied().chain([l]).collect();
                self.make_room_in(w, &l.body, &around)
            }
            _ => stmt.blocks().try_for_each(|block| self.make_room_in(w, block, loops)),
        }
    }

    /// The depth of recursion is that of nesting in the source.
    fn make_room_in(&mut self, w: &mut Writer, block: &Block, loops: &[&Loop]) -> Result<(), Error> {
        for stmt in block {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = *self.source.op(*v)
                && self.copies.contains_key(&array)
                && !self.is_event(*v)
            {
                let capture = self.room(w, *v, array, loops)?;
                self.captures.insert(*v, capture);
            }
            // When a loop runs again, its head finds other elements than it found.
            if let Stmt::Loop(l) = stmt
                && let LoopKind::While { head, .. } = &l.kind
                && let Some(array) = self.loaded_copy(head)
                && !self.is_event_loop(l)
            {
                return Err(self.without_places(array));
            }
            self.make_room_inside(w, stmt, loops)?;
        }
        Ok(())
    }

    fn room(
        &mut self,
        w: &mut Writer,
        v: ValueId,
        array: ArrayId,
        loops: &[&Loop],
    ) -> Result<Capture, Error> {
        let ty = self.source.ty(v);
        if loops.is_empty() {
            let zero = w.literal(Literal::from_bits(ty, 0));
            return Ok(Capture::Local(w.local("found", zero)));
        }
        let places = self.store.as_ref().and_then(|store| store.domain.places_in(loops));
        let tape = places.and_then(|places| Some(Capture::Tape(self.lasting(w, ty, &places)?, places)));
        tape.ok_or_else(|| self.without_places(array))
    }

    /// A copied array that a block loads from.
    fn loaded_copy(&self, block: &Block) -> Option<ArrayId> {
        let mut found = None;
        walk(block, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = *self.source.op(*v)
                && self.copies.contains_key(&array)
            {
                found = Some(array);
            }
        });
        found
    }

    fn without_places(&self, array: ArrayId) -> Error {
        self.unsupported(&format!(
            "a parallel loop whose number of iterations is data, and that reads `{0}` after writing it in an inner loop (let it run \
             over all of `{0}`, with an `if` in its body)",
            self.source.array(array).name
        ))
    }

    /// Places for inner iterations of loops, one inside the other; `None` where bounds are data.
    pub(super) fn places(&self, loops: &[Step]) -> Option<Places> {
        self.store.as_ref()?.domain.places(loops)
    }

    /// A load of an array that the body runs over a copy of.
    pub(super) fn load_copy(
        &mut self,
        w: &mut Writer,
        v: ValueId,
        copy: ArrayId,
        index: Indices,
    ) -> Result<ValueId, Error> {
        if self.is_event(v)
            && let Some(found) = self.load_event(w, v, index)?
        {
            return Ok(found);
        }
        let capture = self.captures.get(&v).cloned();
        let place = match &capture {
            Some(Capture::Tape(_, places)) => self.place(w, places, None),
            _ => None,
        };
        Ok(match (capture, self.again) {
            (Some(Capture::Local(local)), true) => w.get(local),
            (Some(Capture::Tape(tape, _)), true) => match place {
                Some(place) => w.load(tape, place, None),
                None => w.load(copy, self.index(index), None),
            },
            (capture, _) => {
                let found = match self.load_of_run(w, v, index) {
                    Some(found) => found,
                    None => w.load(copy, self.index(index), self.source.value(v).site.clone()),
                };
                match (capture, place) {
                    _ if self.fills_window() => {}
                    (Some(Capture::Local(local)), _) => w.push(Stmt::Set(local, found)),
                    (Some(Capture::Tape(tape, _)), Some(place)) => w.store(tape, place, found, None),
                    _ => {}
                }
                found
            }
        })
    }

    /// A load of an element that the iteration may have stored before.
    pub(super) fn load_compared(
        &mut self,
        w: &mut Writer,
        v: ValueId,
        array: ArrayId,
        index: Indices,
    ) -> ValueId {
        let index = self.index(index);
        let mut found = w.load(array, index, self.source.value(v).site.clone());
        for (at, stored) in self.forwarding.compared.get(&v).into_iter().flatten() {
            let at = self.index(*at);
            let mut same = None;
            for (a, b) in index.as_slice().iter().zip(at.as_slice()).filter(|(a, b)| a != b) {
                let equal = w.compare(Compare::Eq, *a, *b);
                same = Some(both(w, same, equal));
            }
            let stored = self.mapped(*stored);
            found = same.map_or(stored, |same| w.select(same, stored, found));
        }
        found
    }

    /// The place of this inner iteration of the loops around, in this iteration. The innermost loop may be one whose body is not
    /// written yet.
    pub(super) fn place(
        &mut self,
        w: &mut Writer,
        places: &Places,
        innermost: Option<(Option<ValueId>, ValueId)>,
    ) -> Option<Indices> {
        let number = places.number()?.clone();
        let around: Vec<(ValueId, ValueId)> =
            self.around.iter().map(|a| (a.level.var, a.iteration)).collect();
        let number = scratch_arrays::write(w, &number, &mut |w, v| {
            let inner = innermost.and_then(|(var, iteration)| (var == Some(v)).then_some(iteration));
            let iteration =
                || around.iter().rev().find(|(var, _)| *var == v).map(|(_, iteration)| *iteration);
            match inner.or_else(iteration) {
                Some(iteration) => iteration,
                None if *self.source.op(v) == Op::LoopVar => self.mapped(v),
                // Of equal values another one may stand for those that are in scope here.
                None => early(self.source, w, v),
            }
        });
        match places {
            Places::Packed(_) => Indices::new(&[number]),
            _ => self.store.as_ref()?.index(number),
        }
    }

    fn lasting(&mut self, w: &mut Writer, ty: Type, places: &Places) -> Option<ArrayId> {
        let store = self.store.as_mut().filter(|store| store.domain.has_room(places))?;
        Some(store.array(w, ty, places, super::replay::Written::Once))
    }
}
