//! Is a region the same when it is run again?
//!
//! - Input: a region that yields, with the `undo` that the source says.
//! - Output: an array that an execution may read although an abandoned one has written it, and that `undo` does not put
//!   back: then the plain run, which runs the region again on what it left, computes something else than a run that
//!   undoes everything.
//! - Invariant: `None` is a proof; an array is only a suspicion.

use std::collections::BTreeSet;

use ebbtide_ir::dataflow::{self, Analysis, forward};
use ebbtide_ir::{
    Affine, Affines, ArrayId, Block, Indices, LibraryCall, LibraryOp, Op, Par, Program, Region, Stmt, Undone,
    ValueId, walk, written,
};

use crate::analysis::effects::only_store;
use crate::analysis::index_inverse::covers;

/// The first array that an abandoned execution of the region may have changed for the next one.
pub(crate) fn reread(program: &Program, affines: &Affines, region: &Region) -> Option<ArrayId> {
    let undone = Undone::by(region).arrays;
    let mut made = BTreeSet::new();
    walk(&region.body, &mut |stmt| {
        if let Stmt::Temp(array) = stmt {
            made.insert(*array);
        }
    });
    let left = |a: &ArrayId| Some(*a) != region.flag && !undone.contains(a) && !made.contains(a);
    let suspects = written(&region.body).into_iter().filter(left).collect();
    let mut search = Search { program, affines, suspects, found: None };
    forward(&mut search, &region.body, Replaced::default());
    search.found
}

struct Search<'a> {
    program: &'a Program,
    affines: &'a Affines,
    /// Arrays that an abandoned execution leaves changed.
    suspects: BTreeSet<ArrayId>,
    found: Option<ArrayId>,
}

/// Arrays that this execution has written whole, on every way.
#[derive(Clone, Debug, Default, PartialEq)]
struct Replaced(BTreeSet<ArrayId>);

impl dataflow::Facts for Replaced {
    fn join(&mut self, other: &Replaced) {
        self.0.retain(|array| other.0.contains(array));
    }

    fn swap(&mut self, a: ArrayId, b: ArrayId) {
        let (had_a, had_b) = (self.0.remove(&a), self.0.remove(&b));
        self.0.extend(had_a.then_some(b));
        self.0.extend(had_b.then_some(a));
    }
}

/// Elements that an iteration has written, by array and index.
type Stored = Vec<(ArrayId, Vec<Affine>)>;

impl Analysis for Search<'_> {
    type Facts = Replaced;

    fn statement(&mut self, stmt: &Stmt, replaced: &mut Replaced) {
        match stmt {
            Stmt::Let(v) => self.value(*v, replaced),
            // The one element is the whole array.
            Stmt::Store(s) if self.program.array(s.array).rank == 0 => drop(replaced.0.insert(s.array)),
            Stmt::Update(_, s) => self.read(s.array, replaced),
            Stmt::Fill(a, ..) | Stmt::Temp(a) => drop(replaced.0.insert(*a)),
            Stmt::Copy { from, to, .. } => {
                self.read(*from, replaced);
                replaced.0.insert(*to);
            }
            // Exchanged once more, the names are where they were.
            Stmt::Swap(a, b) => {
                let left = [a, b].into_iter().find(|x| self.suspects.contains(x));
                self.found = self.found.or(left.copied());
            }
            Stmt::Library(call) => self.library(call, replaced),
            Stmt::Par(par) => self.parallel(par, replaced),
            _ => {}
        }
    }

    /// What an iteration of a parallel loop reads of what it has written itself is found there.
    fn goes_into(&self, stmt: &Stmt) -> bool {
        !matches!(stmt, Stmt::Par(_))
    }
}

impl Search<'_> {
    fn read(&mut self, array: ArrayId, replaced: &Replaced) {
        if self.suspects.contains(&array) && !replaced.0.contains(&array) {
            self.found.get_or_insert(array);
        }
    }

    fn value(&mut self, v: ValueId, replaced: &Replaced) {
        if let Op::Load(array, _) = self.program.op(v) {
            self.read(*array, replaced);
        }
    }

    fn library(&mut self, call: &LibraryCall, replaced: &mut Replaced) {
        call.reads.iter().for_each(|a| self.read(*a, replaced));
        match call.op {
            // What it may write it may read before.
            LibraryOp::Custom(_) => call.writes.iter().for_each(|a| self.read(*a, replaced)),
            _ if call.op.replaces_all() => replaced.0.extend(&call.writes),
            _ => {}
        }
    }

    fn parallel(&mut self, par: &Par, replaced: &mut Replaced) {
        self.iteration(&par.body, &mut Stored::new(), replaced);
        for array in written(&par.body) {
            if let Some(store) = only_store(par, array)
                && par.body.iter().any(|s| matches!(s, Stmt::Store(s) if s.array == array))
                && covers(self.program, self.affines, par, array, store.index)
            {
                replaced.0.insert(array);
            }
        }
    }

    /// What an iteration has stored before, it may read.
    fn iteration(&mut self, block: &Block, stored: &mut Stored, replaced: &Replaced) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => match *self.program.op(*v) {
                    Op::Load(array, index) if stored.contains(&(array, self.forms(index))) => {}
                    _ => self.value(*v, replaced),
                },
                Stmt::Store(s) => stored.push((s.array, self.forms(s.index))),
                Stmt::Update(_, s) if stored.contains(&(s.array, self.forms(s.index))) => {}
                Stmt::Update(_, s) => self.read(s.array, replaced),
                other => {
                    for inner in other.blocks() {
                        // It may not run: what it stores, only it knows.
                        self.iteration(inner, &mut stored.clone(), replaced);
                    }
                }
            }
        }
    }

    fn forms(&self, index: Indices) -> Vec<Affine> {
        index.as_slice().iter().map(|v| self.affines.form(*v).clone()).collect()
    }
}
