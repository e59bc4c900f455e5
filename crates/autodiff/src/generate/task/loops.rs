//! Sequential loops inside the body of a parallel loop.

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::{Block, LocalId, Loop, LoopKind, Op, Stmt, ValueId, walk};

use super::Task;
use super::capture::Around;
use super::replay::{Iterations, Replay, Tape, last_first};
use crate::analysis::iteration_number::Level;
use crate::error::Error;
use crate::writer::Writer;

impl Task<'_> {
    /// Runs a loop once more. Where its number of inner iterations is data, they are counted.
    pub(super) fn forward_loop(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        iterations: Iterations,
    ) -> Result<(), Error> {
        if let (LoopKind::For { from, to, .. }, None) = (&l.kind, l.until) {
            if self.recall_results(w, l) {
                return Ok(());
            }
            let (from, to) = (self.mapped(*from), self.mapped(*to));
            let tape = self.tape_of(w, l, iterations);
            let LoopKind::For { var, .. } = l.kind else { return Ok(()) };
            let sums = l.sums.iter().map(|local| self.locals.get(local).copied().unwrap_or(*local)).collect();
            self.forward_iterations(w, l, (from, to), sums, |this, w, iteration| {
                this.keep_first(w, &tape, (Some(var), iteration), |w| w.sub(iteration, from));
            })?;
            if iterations == Iterations::Forgotten {
                self.keep_results(w, l);
            }
            return Ok(());
        }
        let tape = self.tape_of(w, l, iterations);
        if self.repeat_loop(w, l, &tape)? {
            return Ok(());
        }
        let event = self.loop_event(w, l);
        let zero = w.index(0);
        let iterations = w.local("passes", zero);
        self.iterations.insert(l.id, iterations);
        let mut iteration = None;
        let kind = match &l.kind {
            LoopKind::For { var, from, to } => {
                let new = self.loop_var(w, Some(*var));
                iteration = Some(new);
                LoopKind::For { var: new, from: self.mapped(*from), to: self.mapped(*to) }
            }
            LoopKind::While { head, condition } => {
                w.begin();
                self.forward(w, head)?;
                LoopKind::While { head: w.end(), condition: self.mapped(*condition) }
            }
            LoopKind::Forever => LoopKind::Forever,
        };
        w.begin();
        self.keep_first(w, &tape, (None, zero), |w| w.get(iterations));
        match iteration {
            Some(iteration) => self.within(l, iteration, |this| this.forward(w, &l.body))?,
            None => self.forward(w, &l.body)?,
        }
        let (counted, one) = (w.get(iterations), w.index(1));
        let next = w.add(counted, one);
        w.push(Stmt::Set(iterations, next));
        let body = w.end();
        let (id, until) = (w.new_loop(), l.until.map(|v| self.mapped(v)));
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until, schedule: None }));
        self.keep_iterations(w, event, iterations);
        self.look_anew();
        Ok(())
    }

    fn tape_of(&mut self, w: &mut Writer, l: &Loop, iterations: Iterations) -> Tape {
        match iterations {
            Iterations::Kept => self.tape(w, l),
            Iterations::Forgotten => Tape::default(),
        }
    }

    /// Runs inner iterations of a loop once more, as many as are said; they add to `sums`, which is empty where not all of them
    /// run. `first` is what each does before its statements.
    pub(super) fn forward_iterations(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (from, to): (ValueId, ValueId),
        sums: Vec<LocalId>,
        first: impl FnOnce(&mut Self, &mut Writer, ValueId),
    ) -> Result<(), Error> {
        let var = if let LoopKind::For { var, .. } = l.kind { Some(var) } else { None };
        let new = self.loop_var(w, var);
        self.look_anew();
        w.begin();
        first(self, w, new);
        self.within(l, new, |this| this.forward(w, &l.body))?;
        let body = w.end();
        self.look_anew();
        let (id, kind) = (w.new_loop(), LoopKind::For { var: new, from, to });
        w.push(Stmt::Loop(Loop { id, kind, body, sums, until: None, schedule: None }));
        Ok(())
    }

    /// Writes something in an inner iteration of a loop.
    pub(super) fn within<T>(
        &mut self,
        l: &Loop,
        iteration: ValueId,
        write: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if let Some(level) = Level::of(l) {
            self.around.push(Around { level, iteration });
        }
        let written = write(self);
        if let LoopKind::For { .. } = l.kind {
            self.around.pop();
        }
        written
    }

    fn loop_var(&mut self, w: &mut Writer, var: Option<ValueId>) -> ValueId {
        let new = w.loop_var(&self.variable_name(var));
        self.map.extend(var.map(|var| (var, new)));
        new
    }

    fn variable_name(&self, var: Option<ValueId>) -> String {
        var.and_then(|v| self.source.value(v).name.clone()).unwrap_or_else(|| "k".to_string())
    }

    /// Takes the inner iterations of a loop backwards.
    pub(super) fn reverse_loop(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        entry: HashMap<LocalId, ValueId>,
    ) -> Result<(), Error> {
        if !self.touches_active(&l.body) {
            return Ok(());
        }
        self.prepare(w, &l.body);
        let steady = self.begin_steady(w, l);
        let reached = self.begin_iterations(l);
        let (var, from) = match l.kind {
            LoopKind::For { var, from, .. } => (Some(var), self.mapped(from)),
            _ => (None, w.index(0)),
        };
        let to = match (&l.kind, l.until, self.iterations.get(&l.id).copied()) {
            (LoopKind::For { to, .. }, None, _) => self.mapped(*to),
            (_, _, Some(iterations)) => {
                let iterations = w.get(iterations);
                w.add(from, iterations)
            }
            _ => return Err(self.unsupported("a loop inside a parallel loop that was not run forward")),
        };
        let replay = self.replay(w, l);
        let events = match replay {
            Replay::Nothing => self.events_of_iteration(l).map(|events| self.write_events(w, &events)),
            _ => None,
        };
        self.depth += 1;
        let again = std::mem::replace(&mut self.again, true);
        match &replay {
            Replay::Slots(slots) => self.reverse_segments(w, l, (var, from, to), &entry, slots)?,
            _ => {
                let (name, back) = self.backwards(w, var);
                w.begin();
                let iteration = last_first(w, from, to, back, name);
                let mut entry = entry;
                if let Replay::Tape(tape) = &replay {
                    self.recall(w, tape, (var, iteration), &mut entry);
                }
                if let Some(events) = events {
                    let before = w.sub(iteration, from);
                    self.skip_events(w, (before, events), &mut entry);
                }
                let outer = self.enter(w, &entry);
                if let Replay::Rerun = replay {
                    // What the locals held before this iteration: run the earlier ones once more.
                    let saved = self.map.clone();
                    let outer = std::mem::replace(&mut self.partial, true);
                    self.forward_iterations(w, l, (from, iteration), Vec::new(), |_, _, _| {})?;
                    (self.map, self.partial) = (saved, outer);
                }
                self.map.extend(var.map(|var| (var, iteration)));
                self.within(l, iteration, |this| this.reverse(w, &l.body))?;
                self.locals = outer;
                let body = w.end();
                let (id, kind) = (w.new_loop(), LoopKind::For { var: back, from, to });
                if let (Some(store), Some(level), None) = (&mut self.store, Level::of(l), l.until) {
                    store.tapes.loops.insert(id, level);
                }
                w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
            }
        }
        self.depth -= 1;
        self.again = again;
        self.steady = steady;
        self.reached.retain(|local| reached.contains(local));
        Ok(())
    }

    /// The variable of a loop that takes inner iterations backwards, and the name of what it stands for.
    pub(super) fn backwards(&mut self, w: &mut Writer, var: Option<ValueId>) -> (String, ValueId) {
        let name = self.variable_name(var);
        let back = w.loop_var(&format!("{name}_back"));
        (name, back)
    }

    /// Takes the cotangents that all inner iterations of a loop leave as they are; gives what was taken around it.
    fn begin_steady(&mut self, w: &mut Writer, l: &Loop) -> HashMap<LocalId, ValueId> {
        let outer = self.steady.clone();
        let mut sums: Vec<(LocalId, LocalId)> =
            self.local_cotangents.iter().map(|(l, bar)| (*l, *bar)).collect();
        sums.retain(|(local, _)| !outer.contains_key(local) && self.sums_up(l, *local));
        sums.sort_unstable();
        for (local, bar) in sums {
            let flowing = w.get(bar);
            if !self.reached.contains(&local) {
                w.mask(flowing);
            }
            self.steady.insert(local, flowing);
        }
        outer
    }

    /// What an inner iteration sets it finds unset in the next one; gives what was reached before the loop.
    fn begin_iterations(&mut self, l: &Loop) -> BTreeSet<LocalId> {
        let before = self.reached.clone();
        walk(&l.body, &mut |stmt| {
            if let Stmt::Set(local, _) = stmt
                && !self.steady.contains_key(local)
            {
                self.reached.remove(local);
            }
        });
        before
    }

    /// Is all that the loop does with a local of its surroundings `local = local ± x`, where nothing comes between?
    /// Then what flows to each `x` is what flows to the local after the loop.
    fn sums_up(&self, l: &Loop, local: LocalId) -> bool {
        let mut blocks: Vec<&Block> = vec![&l.body];
        let mut sets = 0;
        while let Some(block) = blocks.pop() {
            let mut last: Option<ValueId> = None;
            for stmt in block {
                match stmt {
                    Stmt::Let(v) if matches!(self.source.op(*v), Op::Get(g) if *g == local) => {
                        last = Some(*v)
                    }
                    Stmt::Set(set, v) if *set == local => {
                        let sum = match *self.source.op(*v) {
                            Op::Binary(ebbtide_ir::Binary::Add, a, b) => {
                                (Some(a) == last) != (Some(b) == last)
                            }
                            Op::Binary(ebbtide_ir::Binary::Sub, a, b) => Some(a) == last && a != b,
                            _ => false,
                        };
                        if !sum {
                            return false;
                        }
                        (last, sets) = (None, sets + 1);
                    }
                    Stmt::Declare(declared, _) if *declared == local => return false,
                    _ => {
                        if stmt.blocks().next().is_some() {
                            last = None;
                        }
                        blocks.extend(stmt.blocks());
                    }
                }
            }
        }
        sets > 0 && self.only_summed(l, local)
    }

    /// The locals in which an inner iteration finds what an earlier one left.
    pub(super) fn carried(&self, l: &Loop) -> BTreeSet<LocalId> {
        let (mut set, mut read, mut declared) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Set(local, _) => drop(set.insert(*local)),
            Stmt::Declare(local, _) => drop(declared.insert(*local)),
            Stmt::Let(v) => {
                if let Op::Get(local) = self.source.op(*v) {
                    read.insert(*local);
                }
            }
            _ => {}
        });
        // A sum only adds to itself: its own value is in no derivative.
        let carried = |local: &LocalId| {
            read.contains(local)
                && !declared.contains(local)
                && !self.only_summed(l, *local)
                && !self.sets_first(&l.body, *local)
        };
        let mut carried: BTreeSet<LocalId> = set.iter().copied().filter(carried).collect();
        // The number of the next event is computed where all inner iterations have as many.
        let is_known = carried.is_empty() && self.events_of_iteration(l).is_some();
        carried.extend(set.into_iter().filter(|local| self.counts_events(*local) && !is_known));
        carried
    }

    /// Does every inner iteration set the local before it reads it?
    fn sets_first(&self, body: &Block, local: LocalId) -> bool {
        for stmt in body {
            let mut reads = false;
            walk(std::slice::from_ref(stmt), &mut |stmt| {
                reads |= matches!(stmt, Stmt::Let(v) if *self.source.op(*v) == Op::Get(local));
            });
            if reads || matches!(stmt, Stmt::Set(set, _) if *set == local) {
                return !reads;
            }
        }
        false
    }

    /// Is the local used in the loop only as `local = local + x`?
    fn only_summed(&self, l: &Loop, local: LocalId) -> bool {
        let mut uses: HashMap<ValueId, usize> = HashMap::new();
        let mut sums: BTreeSet<ValueId> = BTreeSet::new();
        let mut gets: Vec<ValueId> = Vec::new();
        walk(&l.body, &mut |stmt| {
            stmt.uses().into_iter().for_each(|v| *uses.entry(v).or_default() += 1);
            match stmt {
                Stmt::Let(v) => {
                    let op = self.source.op(*v);
                    op.operands().for_each(|o| *uses.entry(o).or_default() += 1);
                    if matches!(op, Op::Get(g) if *g == local) {
                        gets.push(*v);
                    }
                }
                Stmt::Set(set, v) if *set == local => drop(sums.insert(*v)),
                _ => {}
            }
        });
        let linear = |get: &ValueId| {
            // A sum that something else reads as well is no mere sum.
            sums.iter().filter(|sum| uses.get(sum) == Some(&1)).any(|sum| match *self.source.op(*sum) {
                Op::Binary(ebbtide_ir::Binary::Add, a, b) => (a == *get) != (b == *get),
                Op::Binary(ebbtide_ir::Binary::Sub, a, b) => a == *get && b != *get,
                _ => false,
            })
        };
        gets.iter().all(|get| uses.get(get) == Some(&1) && linear(get))
    }
}
