//! Where threads must meet between program-level statements.
//!
//! The blocks of a grid meet in about a microsecond, the threads of a CPU in a tenth of one, so a segment has a barrier
//! only where one statement may touch what another thread still reads or has just written. What every statement touches,
//! and by which threads, is kept here while the statements are printed, around the back edges of loops too. No meeting is
//! needed for elements that one thread alone touches: what thread 0 does, or the thread that owns an element in loops over
//! the same domain (see [`crate::thread_ownership`]).
//!
//! A loop that may meet a fault is followed by a meeting all the same, so that the first fault is the one that comes first
//! in the program.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Op, Par, Role, Stmt, ValueId, walk};

use crate::thread_ownership::MappingId;
use crate::unit::{Family, Text, line};

/// Which threads touch elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    /// Any thread any element.
    Anyone,
    /// Thread 0.
    First,
    /// Each element is touched by the thread that owns it.
    Owner(MappingId),
}

impl By {
    /// May two threads touch the same element?
    fn meets(self, other: By) -> bool {
        self != other || self == By::Anyone
    }
}

/// What memory goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Array(ArrayId),
    /// What is on the tape of an array.
    Tape(ArrayId),
}

/// What elements are touched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touch {
    Read,
    Write,
}

/// What happened since all threads met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    touches: BTreeSet<(Name, Touch, By)>,
    /// Does thread 0 take the sum of leaves?
    leaves: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        *self == Pending::default()
    }

    /// What may have happened where two ways meet.
    pub fn or(mut self, other: &Pending) -> Pending {
        self.touches.extend(&other.touches);
        self.leaves |= other.leaves;
        self
    }

    /// Two arrays exchange their names.
    pub fn swap(&mut self, a: ArrayId, b: ArrayId) {
        let (a, b) = (Name::Array(a), Name::Array(b));
        let renamed = |name: Name| match name {
            name if name == a => b,
            name if name == b => a,
            name => name,
        };
        self.touches = self.touches.iter().map(|(name, touch, by)| (renamed(*name), *touch, *by)).collect();
    }

    /// Memory changes hands between these names: each may have had what another has now.
    fn mix(&mut self, names: &[Name]) {
        let touched: Vec<(Touch, By)> =
            self.touches.iter().filter(|(name, ..)| names.contains(name)).map(|t| (t.1, t.2)).collect();
        for name in names {
            self.touches.extend(touched.iter().map(|(touch, by)| (*name, *touch, *by)));
        }
    }

    fn of(&self, array: ArrayId) -> impl Iterator<Item = (Touch, By)> {
        self.touches.iter().filter(move |t| t.0 == Name::Array(array)).map(|t| (t.1, t.2))
    }

    /// Would this touch meet another one?
    fn conflicts(&self, array: ArrayId, touch: Touch, by: By) -> bool {
        self.of(array).any(|(other, who)| (touch == Touch::Write || other == Touch::Write) && by.meets(who))
    }

    fn note(&mut self, array: ArrayId, touch: Touch, by: By) {
        self.touches.insert((Name::Array(array), touch, by));
    }
}

/// The arrays that iterations touch, how, and whether each iteration touches its own element alone: the one whose index is
/// the iteration's.
pub(crate) fn touches(
    program: &ebbtide_ir::Program,
    affines: &Affines,
    par: &Par,
) -> BTreeMap<ArrayId, (BTreeSet<Touch>, bool)> {
    let own = |index: &[ValueId]| {
        index.len() == par.ranges.len()
            && par.ranges.iter().zip(index).all(|(r, v)| affines.form(*v).as_atom() == Some(r.var))
    };
    let mut touched: BTreeMap<ArrayId, (BTreeSet<Touch>, bool)> = BTreeMap::new();
    let mut note = |array: ArrayId, touch: &[Touch], own: bool| {
        let entry = touched.entry(array).or_insert_with(|| (BTreeSet::new(), true));
        entry.0.extend(touch);
        entry.1 &= own;
    };
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            if let Op::Load(array, index) = program.op(*v) {
                note(*array, &[Touch::Read], own(index.as_slice()));
            }
        }
        Stmt::Store(s) => note(s.array, &[Touch::Write], own(s.index.as_slice())),
        Stmt::Update(_, s) => note(s.array, &[Touch::Read, Touch::Write], own(s.index.as_slice())),
        Stmt::Claim(claim) => note(claim.taken, &[Touch::Read, Touch::Write], false),
        _ => {}
    });
    touched
}

impl Text<'_> {
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
        let olds = self.program.array_ids().filter(|a| self.program.array(*a).role == Role::Old(array));
        let names: Vec<Name> = olds.map(Name::Array).chain([Name::Array(array), Name::Tape(array)]).collect();
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

    /// What a loop touches, and by which threads.
    fn touched(&self, par: &Par) -> Vec<(ArrayId, Touch, By)> {
        let mapping = self.mapping(par);
        let touches = touches(self.program, &self.facts.affines, par);
        let each = touches.into_iter().flat_map(|(array, (touches, own))| {
            let by = mapping.filter(|_| own).map_or(By::Anyone, By::Owner);
            touches.into_iter().map(move |touch| (array, touch, by))
        });
        each.collect()
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
