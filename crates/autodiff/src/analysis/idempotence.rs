//! Is a region the same when it is run again?
//!
//! - Input: a region that yields, with the `undo` that the source says.
//! - Output: an array that an execution may read although an abandoned one has written it, and that `undo` does not put
//!   back: then the plain run, which runs the region again on what it left, computes something else than a run that
//!   undoes everything.
//! - Invariant: `None` is a proof; an array is only a suspicion.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affine, Affines, ArrayId, Block, Indices, LibraryCall, LibraryOp, Loop, LoopKind, Op, Par, Program,
    Region, Stmt, Undone, ValueId, walk, written,
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
    let mut search = Search { program, affines, suspects, replaced: BTreeSet::new(), found: None };
    search.block(&region.body);
    search.found
}

struct Search<'a> {
    program: &'a Program,
    affines: &'a Affines,
    /// Arrays that an abandoned execution leaves changed.
    suspects: BTreeSet<ArrayId>,
    /// Arrays that this execution has written whole.
    replaced: BTreeSet<ArrayId>,
    found: Option<ArrayId>,
}

/// Elements that an iteration has written, by array and index.
type Stored = Vec<(ArrayId, Vec<Affine>)>;

impl Search<'_> {
    fn read(&mut self, array: ArrayId) {
        if self.suspects.contains(&array) && !self.replaced.contains(&array) {
            self.found.get_or_insert(array);
        }
    }

    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) {
        block.iter().for_each(|stmt| self.statement(stmt));
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(v) => self.value(*v),
            Stmt::Store(s) => {
                // The one element is the whole array.
                if self.program.array(s.array).rank == 0 {
                    self.replaced.insert(s.array);
                }
            }
            Stmt::Update(_, s) => self.read(s.array),
            Stmt::Fill(a, _) | Stmt::Temp(a) => drop(self.replaced.insert(*a)),
            Stmt::Copy { from, to } => {
                self.read(*from);
                self.replaced.insert(*to);
            }
            // Exchanged once more, the names are where they were.
            Stmt::Swap(a, b) => {
                let left = [a, b].into_iter().find(|x| self.suspects.contains(x));
                self.found = self.found.or(left.copied());
            }
            Stmt::Library(call) => self.library(call),
            Stmt::Par(par) => self.parallel(par),
            Stmt::If(branch) => {
                let before = self.replaced.clone();
                self.block(&branch.then);
                let then = std::mem::replace(&mut self.replaced, before);
                self.block(&branch.otherwise);
                self.replaced.retain(|a| then.contains(a));
            }
            Stmt::Loop(l) => self.sequential(l),
            other => other.blocks().for_each(|block| self.block(block)),
        }
    }

    fn value(&mut self, v: ValueId) {
        if let Op::Load(array, _) = self.program.op(v) {
            self.read(*array);
        }
    }

    fn sequential(&mut self, l: &Loop) {
        if let LoopKind::While { head, .. } = &l.kind {
            self.block(head);
        }
        let before = self.replaced.clone();
        self.block(&l.body);
        // The body of a `loop` runs at least once; of the others it may not.
        if !matches!(l.kind, LoopKind::Forever) {
            self.replaced = before;
        }
    }

    fn library(&mut self, call: &LibraryCall) {
        call.reads.iter().for_each(|a| self.read(*a));
        match call.op {
            // What it may write it may read before.
            LibraryOp::Custom(_) => call.writes.iter().for_each(|a| self.read(*a)),
            _ if call.op.replaces_all() => self.replaced.extend(&call.writes),
            _ => {}
        }
    }

    fn parallel(&mut self, par: &Par) {
        self.iteration(&par.body, &mut Stored::new());
        for array in written(&par.body) {
            if let Some(store) = only_store(par, array)
                && par.body.iter().any(|s| matches!(s, Stmt::Store(s) if s.array == array))
                && covers(self.program, self.affines, par, array, store.index)
            {
                self.replaced.insert(array);
            }
        }
    }

    /// What an iteration has stored before, it may read.
    fn iteration(&mut self, block: &Block, stored: &mut Stored) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => match *self.program.op(*v) {
                    Op::Load(array, index) if stored.contains(&(array, self.forms(index))) => {}
                    _ => self.value(*v),
                },
                Stmt::Store(s) => stored.push((s.array, self.forms(s.index))),
                Stmt::Update(_, s) if stored.contains(&(s.array, self.forms(s.index))) => {}
                Stmt::Update(_, s) => self.read(s.array),
                other => {
                    for inner in other.blocks() {
                        // It may not run: what it stores, only it knows.
                        self.iteration(inner, &mut stored.clone());
                    }
                }
            }
        }
    }

    fn forms(&self, index: Indices) -> Vec<Affine> {
        index.as_slice().iter().map(|v| self.affines.form(*v).clone()).collect()
    }
}
