//! Where threads must meet between program-level statements.
//!
//! To meet costs the blocks of a grid about a microsecond and the threads of a CPU a tenth of that, so there is a barrier
//! only where one statement may touch what another thread still reads or has just written. After a parallel loop all have
//! met, since its iterations may have failed; what threads read and write between loops is kept here while the statements
//! are printed.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Op, Par, Stmt, walk};

use crate::unit::{Family, Text, line};

/// What happened since all threads met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// Arrays of which threads read elements.
    reads: BTreeSet<ArrayId>,
    /// Arrays of which thread 0 wrote elements.
    writes: BTreeSet<ArrayId>,
    /// Arrays of which each thread wrote a part.
    parts: BTreeSet<ArrayId>,
    /// Does thread 0 take the sum of leaves?
    leaves: bool,
}

impl Pending {
    fn is_empty(&self) -> bool {
        *self == Pending::default()
    }

    /// What may have happened where two ways meet.
    pub fn or(mut self, other: Pending) -> Pending {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.parts.extend(other.parts);
        self.leaves |= other.leaves;
        self
    }

    /// Each thread wrote a part of an array.
    pub fn wrote_parts(&mut self, array: ArrayId) {
        self.parts.insert(array);
    }

    /// Two arrays exchange their names.
    pub fn swap(&mut self, a: ArrayId, b: ArrayId) {
        for set in [&mut self.reads, &mut self.writes, &mut self.parts] {
            let (had_a, had_b) = (set.remove(&a), set.remove(&b));
            if had_a {
                set.insert(b);
            }
            if had_b {
                set.insert(a);
            }
        }
    }
}

impl Text<'_> {
    /// All threads meet here.
    pub fn meet(&mut self) {
        self.pending = Pending::default();
        line!(self, "if (eb_barrier(f)) goto leave;");
    }

    /// All threads meet here, if any of them may still be about something.
    pub fn meet_if_pending(&mut self) {
        if !self.pending.is_empty() {
            self.meet();
        }
    }

    /// Before memory changes hands: what is pending was noted under other names.
    pub fn before_exchange(&mut self) {
        self.meet_if_pending();
    }

    /// Before all threads read an element.
    pub fn before_read(&mut self, array: ArrayId) {
        if self.pending.writes.contains(&array) || self.pending.parts.contains(&array) {
            self.meet();
        }
    }

    /// After all threads read an element.
    pub fn after_read(&mut self, array: ArrayId) {
        self.pending.reads.insert(array);
    }

    /// Before thread 0 writes an element.
    pub fn before_write(&mut self, array: ArrayId) {
        if self.pending.reads.contains(&array) || self.pending.parts.contains(&array) {
            self.meet();
        }
    }

    /// After thread 0 wrote an element.
    pub fn after_write(&mut self, array: ArrayId) {
        self.pending.writes.insert(array);
    }

    /// After thread 0 took the sums of leaves.
    pub fn after_leaves(&mut self, arrays: impl Iterator<Item = ArrayId>) {
        self.pending.leaves = true;
        self.pending.writes.extend(arrays);
    }

    /// Before each thread touches elements of its own choice.
    pub fn before_parts(&mut self, reads: &BTreeSet<ArrayId>, writes: &BTreeSet<ArrayId>) {
        let pending = &self.pending;
        let meets = |set: &BTreeSet<ArrayId>, other: &BTreeSet<ArrayId>| !set.is_disjoint(other);
        if pending.leaves
            || [reads, writes].iter().any(|set| meets(set, &pending.writes) || meets(set, &pending.parts))
            || meets(writes, &pending.reads)
        {
            self.meet();
        }
    }

    /// After each thread touched elements of its own choice, and none of them failed.
    pub fn after_parts(&mut self, reads: BTreeSet<ArrayId>, writes: BTreeSet<ArrayId>) {
        match self.family {
            Family::C => {
                self.pending.reads.extend(reads);
                self.pending.parts.extend(writes);
            }
            Family::Cuda => self.meet(),
        }
    }

    /// Before a loop in which each thread touches elements of its own choice.
    pub fn before_loop(&mut self, par: &Par) {
        let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, _) = self.program.op(*v) {
                    reads.insert(*array);
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => drop(writes.insert(s.array)),
            Stmt::Claim(claim) => drop(writes.insert(claim.taken)),
            _ => {}
        });
        self.before_parts(&reads, &writes);
    }
}
