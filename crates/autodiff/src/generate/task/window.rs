//! A window on the events of an iteration whose length is not known.
//!
//! An iteration keeps a window of what it found: some values, one after the other, from the event `first` on. A part of it that
//! is run again and asks for an event outside of the window has the whole iteration run once more, over copies of its
//! arrays, and keeps another part of the events. Copies need no new start for that: each element knows in which run it was
//! written last, and one that was not written in this run is what it was before the loop.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Combine, Compare, Indices, Literal, LocalId, Loop, LoopKind, Site, Stmt,
    Store, Type, ValueId, depends_on_arguments_alone, walk,
};

use super::Task;
use super::replay::Tape;
use crate::error::Error;
use crate::normalize::early::early;
use crate::plan::events::Events;
use crate::writer::{Writer, both};

/// This many events from one that was asked for on are in the window: fewer than half of the least window.
const AHEAD: i64 = 16;

/// The window of an iteration.
pub(super) struct Window<'a> {
    events: &'a Events,
    /// The arrays that say in which run elements of a copied array were written last.
    stamps: BTreeMap<ArrayId, ArrayId>,
    /// The first event of the window.
    first: LocalId,
    /// The number of this run.
    run: LocalId,
    /// The number of the iteration.
    iteration: ValueId,
    /// The windows, by type.
    tapes: BTreeMap<Type, ArrayId>,
    /// What values are at the beginning of the iteration.
    start: HashMap<ValueId, ValueId>,
    /// This many events from the next one on are known to be in the window.
    ahead: i64,
    is_filled: bool,
}

/// A number of events that is known before they come.
#[derive(Default)]
pub(super) struct EventCount {
    alone: i64,
    /// Loops by their bounds, and the events of each inner iteration.
    loops: Vec<(ValueId, ValueId, EventCount)>,
}

impl EventCount {
    fn is_zero(&self) -> bool {
        self.alone == 0 && self.loops.is_empty()
    }
}

impl<'a> Task<'a> {
    /// Lets parts of the iteration that are run again ask for these events. The stamps of all elements are zero.
    pub fn with_events(
        mut self,
        w: &mut Writer,
        events: Option<(&'a Events, BTreeMap<ArrayId, ArrayId>)>,
    ) -> Task<'a> {
        let (Some((events, stamps)), Some(store)) = (events, &self.store) else { return self };
        let iteration = store.iteration(w);
        let (zero, one) = (w.index(0), w.literal(Literal::from(1i64)));
        self.window = Some(Window {
            events,
            stamps,
            first: w.local("first", zero),
            run: w.local("run", one),
            iteration,
            tapes: BTreeMap::new(),
            start: self.map.clone(),
            ahead: 0,
            is_filled: false,
        });
        self
    }

    /// Is what this load finds an event?
    pub(super) fn is_event(&self, v: ValueId) -> bool {
        self.window.as_ref().is_some_and(|window| window.events.loads.contains(&v))
    }

    /// Is the local the number of the next event?
    pub(super) fn counts_events(&self, local: LocalId) -> bool {
        self.window.as_ref().is_some_and(|window| window.events.next == local)
    }

    /// How many events an inner iteration of a loop has, where all have as many and that is known before the loop; `None` where
    /// it has none.
    pub(super) fn events_of_iteration(&self, l: &Loop) -> Option<EventCount> {
        let mut defined = BTreeSet::new();
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Let(v) => drop(defined.insert(*v)),
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(defined.insert(*var)),
            _ => {}
        });
        let count = self.events_of_block(&l.body, &defined)?;
        (!count.is_zero()).then_some(count)
    }

    /// The depth of recursion is that of nesting in the source.
    fn events_of_block(&self, block: &Block, defined: &BTreeSet<ValueId>) -> Option<EventCount> {
        let mut count = EventCount::default();
        for stmt in block {
            match stmt {
                Stmt::Let(v) if self.is_event(*v) => count.alone += 1,
                Stmt::Loop(l) => {
                    let inside = self.events_of_block(&l.body, defined)?;
                    count.alone += i64::from(self.is_event_loop(l));
                    if inside.is_zero() {
                        continue;
                    }
                    let LoopKind::For { from, to, .. } = l.kind else { return None };
                    let is_known =
                        |v: &ValueId| !defined.contains(v) || depends_on_arguments_alone(self.source, *v);
                    if l.until.is_some() || ![from, to].iter().all(is_known) {
                        return None;
                    }
                    count.loops.push((from, to, inside));
                }
                _ => {
                    let mut inside = stmt.blocks().map(|block| self.events_of_block(block, defined));
                    if !inside.all(|count| count.is_some_and(|count| count.is_zero())) {
                        return None;
                    }
                }
            }
        }
        Some(count)
    }

    /// Writes a number of events. The depth of recursion is that of nesting in the source.
    pub(super) fn write_events(&mut self, w: &mut Writer, count: &EventCount) -> ValueId {
        let mut sum = w.index(count.alone);
        for (from, to, inside) in &count.loops {
            let [from, to] = [*from, *to].map(|v| match depends_on_arguments_alone(self.source, v) {
                true => early(self.source, w, v),
                false => self.mapped(v),
            });
            // A loop that runs backwards does not run.
            let end = w.binary(Binary::Max, from, to);
            let iterations = w.sub(end, from);
            let each = self.write_events(w, inside);
            let all = w.mul(iterations, each);
            sum = w.add(sum, all);
        }
        sum
    }

    /// Lets an inner iteration begin after the events of this many before it.
    pub(super) fn skip_events(
        &self,
        w: &mut Writer,
        (iterations, each): (ValueId, ValueId),
        entry: &mut HashMap<LocalId, ValueId>,
    ) {
        if let Some(next) = self.window.as_ref().map(|window| window.events.next)
            && let Some(first) = entry.get(&next).copied()
        {
            let skipped = w.mul(iterations, each);
            let number = w.add(first, skipped);
            entry.insert(next, number);
        }
    }

    /// Events may lie between the last one that was asked for and the next.
    pub(super) fn look_anew(&mut self) {
        if let Some(window) = &mut self.window {
            window.ahead = 0;
        }
    }

    /// A load whose result is an event.
    pub(super) fn load_event(
        &mut self,
        w: &mut Writer,
        v: ValueId,
        index: Indices,
    ) -> Result<Option<ValueId>, Error> {
        let ty = self.source.ty(v);
        let Some(number) = self.next_event(w) else { return Ok(None) };
        if self.again {
            return self.recall_event(w, ty, number);
        }
        let found = self.load_of_run(w, v, index);
        if let Some(found) = found {
            self.keep_event(w, ty, number, found);
        }
        Ok(found)
    }

    /// Loads what the iteration finds in this run of it.
    pub(super) fn load_of_run(&mut self, w: &mut Writer, v: ValueId, index: Indices) -> Option<ValueId> {
        let ebbtide_ir::Op::Load(array, _) = *self.source.op(v) else { return None };
        let index = self.index(index);
        self.element_of_run(w, array, index, self.source.value(v).site.clone())
    }

    fn element_of_run(
        &mut self,
        w: &mut Writer,
        array: ArrayId,
        index: Indices,
        site: Option<Site>,
    ) -> Option<ValueId> {
        let window = self.window.as_ref()?;
        let (stamp, copy) = (*window.stamps.get(&array)?, *self.copies.get(&array)?);
        let (written, run) = (w.load(stamp, index, None), w.get(window.run));
        let is_written = w.compare(Compare::Eq, written, run);
        let (now, before) = (w.load(copy, index, None), w.load(array, index, site));
        Some(w.select(is_written, now, before))
    }

    /// Stores to a copy; `false` where copies have no runs.
    pub(super) fn store_in_run(&mut self, w: &mut Writer, how: Option<Combine>, s: &Store) -> bool {
        let Some(window) = &self.window else { return false };
        let (run, stamp) = (window.run, window.stamps.get(&s.array).copied());
        let (Some(stamp), Some(copy)) = (stamp, self.copies.get(&s.array).copied()) else { return false };
        let (index, mut value) = (self.index(s.index), self.mapped(s.value));
        if let Some(how) = how
            && let Some(old) = self.element_of_run(w, s.array, index, s.site.clone())
        {
            value = match how {
                Combine::Add => w.add(old, value),
                Combine::Min => w.binary(Binary::Min, old, value),
                Combine::Max => w.binary(Binary::Max, old, value),
            };
        }
        w.store(copy, index, value, s.site.clone());
        let run = w.get(run);
        w.store(stamp, index, run, None);
        true
    }

    /// Runs a loop whose number of inner iterations is an event once more; `false` where that number has to be found out.
    pub(super) fn repeat_loop(&mut self, w: &mut Writer, l: &Loop, tape: &Tape) -> Result<bool, Error> {
        if !self.again || !self.is_event_loop(l) {
            return Ok(false);
        }
        let Some(number) = self.own_event(w) else { return Ok(false) };
        let Some(iterations) = self.recall_event(w, Type::I64, number)? else { return Ok(false) };
        let iterations = w.cast(iterations, Type::Index);
        let counted = w.local("passes", iterations);
        self.iterations.insert(l.id, counted);
        let from = match l.kind {
            LoopKind::For { from, .. } => self.mapped(from),
            _ => w.index(0),
        };
        let to = w.add(from, iterations);
        self.forward_iterations(w, l, (from, to), Vec::new(), |this, w, iteration| {
            this.keep_first(w, tape, (None, iteration), |w| w.sub(iteration, from));
        })?;
        Ok(true)
    }

    /// The number of the event that a loop is which is about to run.
    pub(super) fn loop_event(&mut self, w: &mut Writer, l: &Loop) -> Option<ValueId> {
        if self.is_event_loop(l) { self.own_event(w) } else { None }
    }

    /// Keeps how many inner iterations a loop had.
    pub(super) fn keep_iterations(&mut self, w: &mut Writer, event: Option<ValueId>, iterations: LocalId) {
        if let Some(event) = event {
            let iterations = w.get(iterations);
            let iterations = w.cast(iterations, Type::I64);
            self.keep_event(w, Type::I64, event, iterations);
        }
    }

    pub(super) fn is_event_loop(&self, l: &Loop) -> bool {
        self.window.as_ref().is_some_and(|window| window.events.loops.contains(&l.id))
    }

    fn next_event(&self, w: &mut Writer) -> Option<ValueId> {
        let next = self.window.as_ref()?.events.next;
        self.locals.get(&next).map(|next| w.get(*next))
    }

    fn own_event(&self, w: &mut Writer) -> Option<ValueId> {
        let next = self.next_event(w)?;
        let one = w.index(1);
        Some(w.sub(next, one))
    }

    /// The window for values of a type.
    fn tape_of_events(&mut self, w: &mut Writer, ty: Type) -> Option<ArrayId> {
        let window = self.window.as_mut()?;
        if let Some(tape) = window.tapes.get(&ty) {
            return Some(*tape);
        }
        let tape = self.store.as_mut()?.window(w, ty);
        window.tapes.insert(ty, tape);
        Some(tape)
    }

    /// Keeps what was found if it lies in the window.
    fn keep_event(&mut self, w: &mut Writer, ty: Type, number: ValueId, found: ValueId) {
        let Some(tape) = self.tape_of_events(w, ty) else { return };
        let Some(window) = &self.window else { return };
        let (first, length) = (w.get(window.first), w.dim(tape, 0));
        let end = w.add(first, length);
        let (begun, open) = (w.compare(Compare::Ge, number, first), w.compare(Compare::Lt, number, end));
        let condition = both(w, Some(begun), open);
        w.begin();
        let place = w.sub(number, first);
        if let Some(index) = Indices::new(&[place, window.iteration]) {
            w.store(tape, index, found, None);
        }
        let then = w.end();
        w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
    }

    /// What was found at an event.
    fn recall_event(&mut self, w: &mut Writer, ty: Type, number: ValueId) -> Result<Option<ValueId>, Error> {
        let Some(tape) = self.tape_of_events(w, ty) else { return Ok(None) };
        if self.window.as_ref().is_some_and(|window| window.ahead == 0) {
            self.move_window(w, tape, number)?;
        }
        let Some(window) = &mut self.window else { return Ok(None) };
        window.ahead -= 1;
        let first = w.get(window.first);
        let place = w.sub(number, first);
        Ok(Indices::new(&[place, window.iteration]).map(|index| w.load(tape, index, None)))
    }

    /// Makes sure that an event and some after it are in the window.
    fn move_window(&mut self, w: &mut Writer, tape: ArrayId, number: ValueId) -> Result<(), Error> {
        let Some((first, run, events)) = self.window.as_ref().map(|w| (w.first, w.run, w.events)) else {
            return Ok(());
        };
        let (start, length, ahead) = (w.get(first), w.dim(tape, 0), w.index(AHEAD));
        let (end, last) = (w.add(start, length), w.add(number, ahead));
        let (before, beyond) = (w.compare(Compare::Lt, number, start), w.compare(Compare::Gt, last, end));
        let outside = w.binary(Binary::Or, before, beyond);
        w.begin();
        // Windows begin at half their length: what is asked for next, before it or after it, is near its middle.
        let two = w.index(2);
        let half = w.div(length, two);
        let halves = w.div(number, half);
        let moved = w.mul(halves, half);
        w.push(Stmt::Set(first, moved));
        let (old, one) = (w.get(run), w.literal(Literal::from(1i64)));
        let next = w.add(old, one);
        w.push(Stmt::Set(run, next));
        let begin = self.window.as_ref().map(|window| window.start.clone()).unwrap_or_default();
        let map = std::mem::replace(&mut self.map, begin);
        let locals = std::mem::take(&mut self.locals);
        let around = std::mem::take(&mut self.around);
        let iterations = self.iterations.clone();
        let again = std::mem::replace(&mut self.again, false);
        self.set_filled(true);
        self.forward(w, &events.par.body)?;
        self.set_filled(false);
        (self.map, self.locals, self.around) = (map, locals, around);
        (self.iterations, self.again) = (iterations, again);
        let then = w.end();
        w.push(Stmt::If(Branch { condition: outside, then, otherwise: Vec::new() }));
        if let Some(window) = &mut self.window {
            window.ahead = AHEAD;
        }
        Ok(())
    }

    fn set_filled(&mut self, is_filled: bool) {
        if let Some(window) = &mut self.window {
            window.is_filled = is_filled;
        }
    }

    /// Is the iteration run for its events alone?
    pub(super) fn fills_window(&self) -> bool {
        self.window.as_ref().is_some_and(|window| window.is_filled)
    }
}
