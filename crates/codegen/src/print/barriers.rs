//! Barriers, as text: each statement says what it is about to touch and what it touched (see [`crate::analysis::barriers`]).

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Par};

use crate::analysis::barriers::{By, Name, Pending, Touch, exchanged_with, touched_by};
use crate::kernel::machine::Family;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// All threads meet here.
    pub fn meet(&mut self) {
        self.pending = Pending::default();
        self.meetings += 1;
        line!(self, "if (eb_barrier(f)) goto leave;");
    }

    /// All threads meet here, if any of them may still be about something.
    pub fn meet_if_pending(&mut self) {
        if !self.pending.is_empty() {
            self.meet();
        }
    }

    /// Before all threads read an element.
    pub fn before_read(&mut self, array: ArrayId) {
        if self.pending.conflicts(array, Touch::Read, By::Anyone) {
            self.meet();
        }
    }

    /// After all threads read an element.
    pub fn after_read(&mut self, array: ArrayId) {
        self.pending.note(array, Touch::Read, By::Anyone);
    }

    /// Before one thread writes an element: which one, so that it need not wait for others if that can be.
    pub fn before_write(&mut self, array: ArrayId) -> By {
        let who: BTreeSet<By> = self.pending.of(array).map(|(_, by)| by).collect();
        match who.into_iter().collect::<Vec<By>>().as_slice() {
            [] => By::First,
            [by @ (By::First | By::Owner(_))] => *by,
            _ => {
                self.meet();
                By::First
            }
        }
    }

    /// After that thread wrote it.
    pub fn after_write(&mut self, array: ArrayId, by: By) {
        self.pending.note(array, Touch::Read, by);
        self.pending.note(array, Touch::Write, by);
    }

    /// After thread 0 took the sums of leaves.
    pub fn after_leaves(&mut self, arrays: impl Iterator<Item = ArrayId>) {
        if self.family == Family::C {
            // A fault ends the run here.
            return self.meet();
        }
        self.pending.leaves = true;
        arrays.for_each(|array| self.after_write(array, By::First));
    }

    /// Before the memory of an array is exchanged with some on its tape, or after.
    pub fn exchange(&mut self, array: ArrayId) {
        let names = exchanged_with(self.program, array);
        self.pending.mix(&names);
    }

    /// Before each thread touches elements of its own choice.
    pub fn before_parts(&mut self, reads: &BTreeSet<ArrayId>, writes: &BTreeSet<ArrayId>) {
        let conflicts = |set: &BTreeSet<ArrayId>, touch| {
            set.iter().any(|array| self.pending.conflicts(*array, touch, By::Anyone))
        };
        if self.pending.leaves || conflicts(reads, Touch::Read) || conflicts(writes, Touch::Write) {
            self.meet();
        }
    }

    /// After each thread touched elements of its own choice, and none of them failed.
    pub fn after_parts(&mut self, reads: BTreeSet<ArrayId>, writes: BTreeSet<ArrayId>) {
        match self.family {
            Family::C => {
                reads.into_iter().for_each(|array| self.after_read(array));
                writes.into_iter().for_each(|array| self.wrote_parts(array));
            }
            Family::Cuda => self.meet(),
        }
    }

    /// Each thread wrote a part of an array.
    pub fn wrote_parts(&mut self, array: ArrayId) {
        self.after_write(array, By::Anyone);
    }

    /// Each thread wrote a part of what is on the tape of an array now.
    pub fn pushed_parts(&mut self, array: ArrayId) {
        if self.family == Family::C {
            self.pending.touches.insert((Name::Tape(array), Touch::Write, By::Anyone));
        }
    }

    fn touched(&self, par: &Par) -> Vec<(ArrayId, Touch, By)> {
        touched_by(self.program, self.facts, par, self.mapping(par))
    }

    /// Before a loop in which each thread touches elements of its own choice.
    pub fn before_loop(&mut self, par: &Par) {
        let touched = self.touched(par);
        if self.pending.leaves || touched.iter().any(|(a, touch, by)| self.pending.conflicts(*a, *touch, *by))
        {
            self.meet();
        }
    }

    /// After a loop; `safe` is a condition, the same for all threads, under which it cannot have met a fault. One that the
    /// host stopped may have been left half-way all the same: that is learnt at the next meeting, and until then every index
    /// is checked or proved as ever.
    pub fn after_loop(&mut self, par: &Par, safe: Option<&str>) {
        let Some(safe) = safe else { return self.meet() };
        match self.family {
            Family::Cuda => line!(self, "if (!{safe} && eb_barrier(f)) goto leave;"),
            // One thread looks at no proofs: what a barrier does costs it less.
            Family::C => line!(self, "if ((f->threads == 1 || !({safe})) && eb_barrier(f)) goto leave;"),
        }
        for (array, touch, by) in self.touched(par) {
            self.pending.note(array, touch, by);
        }
    }
}
