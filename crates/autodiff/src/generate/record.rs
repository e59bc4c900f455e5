//! The forward half: the program with its tape.

use std::collections::BTreeMap;

use ebbtide_ir::{
    Affines, After, ArrayId, Branch, Indices, LibraryCall, Op, Par, ParFacts, ParId, Program, Push, Role,
    Sharing, Stmt, Store, ValueId, walk,
};

use crate::analysis::effects::only_store;
use crate::analysis::index_inverse::{covers, identity};
use crate::analysis::top_level::TopLevel;
use crate::plan::tape_plan::TapePlan;
use crate::writer::{Writer, both, within};

/// Writes statements with their tape.
pub(crate) struct Recorder<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    pub plan: &'a TapePlan,
    /// How parallel loops share what they write.
    pub pars: &'a BTreeMap<ParId, ParFacts>,
    /// May the memory of arrays itself go on the tape?
    pub exchanges: bool,
    /// The top-level statement that is being written.
    pub position: TopLevel,
}

/// May a recorded loop run over more iterations than the program's?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Widening {
    Lawful,
    Unlawful,
}

impl Recorder<'_> {
    /// A parallel loop that puts what it overwrites on the tape. `par` is the same loop, and may do more.
    pub fn par(&self, w: &mut Writer, source: &Par, mut par: Par) {
        let widens = self.may_widen(source);
        let pushed = self.plan.par(source).to_vec();
        if !pushed.is_empty() {
            par.id = w.new_par();
        }
        for array in pushed {
            match self.exchange(w, &mut par, array, widens) {
                Some(old) => w.push(Stmt::Push(Push { array, after: After::Anything(old) })),
                None => w.push(Stmt::Push(Push { array, after: After::Same })),
            }
        }
        w.push(Stmt::Par(par));
    }

    /// A library operation that puts what it overwrites on the tape: the memory itself where it writes all of it.
    pub fn library(&self, w: &mut Writer, call: &LibraryCall) {
        for array in self.plan.call(call, self.position) {
            let after = if call.op.replaces_all() && self.exchanges {
                After::Anything(self.old(w, array))
            } else {
                After::Same
            };
            w.push(Stmt::Push(Push { array, after }));
        }
        w.push(Stmt::Library(call.clone()));
    }

    /// A name for what an array held before.
    fn old(&self, w: &mut Writer, array: ArrayId) -> ArrayId {
        let decl = self.source.array(array);
        w.array(format!("{}_old", decl.name), decl.ty, decl.rank, Role::Old(array))
    }

    /// Rewrites the loop so that it writes every element and reads the old ones through an alias: then the array's
    /// memory itself goes on the tape, and nothing is copied. `None` where the loop does not allow it.
    fn exchange(&self, w: &mut Writer, par: &mut Par, array: ArrayId, widens: Widening) -> Option<ArrayId> {
        let store = only_store(par, array).filter(|_| self.exchanges)?.clone();
        // Elements of other iterations that it reads behind its write are not written yet when the loop begins.
        if self.reads_others_after_its_write(&w.program, par, array, store.index) {
            return None;
        }
        let whole = covers(self.source, self.affines, par, array, store.index);
        if !identity(self.affines, par, store.index) || (!whole && widens == Widening::Unlawful) {
            return None;
        }
        let decl = self.source.array(array);
        let old = self.old(w, array);
        // The loop may have been rewritten for another array already: its values are those of the new program.
        let rename: Vec<(ValueId, ValueId)> = loads_before_its_write(&w.program, par, array)
            .into_iter()
            .map(|(v, index)| {
                let site = w.program.value(v).site.clone();
                (v, w.program.add_value(Op::Load(old, index), decl.ty, site))
            })
            .collect();
        par.body = crate::writer::rename::rename(
            w,
            std::mem::take(&mut par.body),
            &mut rename.into_iter().collect(),
        );
        // `a[i] += x` becomes `a[i] = old[i] + x`.
        let at = par
            .body
            .iter()
            .position(|s| matches!(s, Stmt::Store(s) | Stmt::Update(_, s) if s.array == array))?;
        if let Stmt::Update(how, s) = par.body[at].clone() {
            let before = w.program.add_value(Op::Load(old, s.index), decl.ty, s.site.clone());
            let op = match how {
                ebbtide_ir::Combine::Add => ebbtide_ir::Binary::Add,
                ebbtide_ir::Combine::Min => ebbtide_ir::Binary::Min,
                ebbtide_ir::Combine::Max => ebbtide_ir::Binary::Max,
            };
            let sum = w.program.add_value(Op::Binary(op, before, s.value), decl.ty, None);
            let store = Stmt::Store(Store { value: sum, ..s });
            par.body.splice(at..=at, [Stmt::Let(before), Stmt::Let(sum), store]);
        }
        if !whole {
            self.extend(w, par, array, old);
        }
        Some(old)
    }

    /// Does an iteration read elements other than its own of an array behind its write?
    fn reads_others_after_its_write(
        &self,
        program: &Program,
        par: &Par,
        array: ArrayId,
        own: Indices,
    ) -> bool {
        let writes = |s: &Stmt| matches!(s, Stmt::Store(s) | Stmt::Update(_, s) if s.array == array);
        let before = par.body.iter().position(writes).unwrap_or(par.body.len());
        // Values that were made while this loop was rewritten for another array are not known.
        let known = |v: &ValueId| v.index() < self.source.values.len();
        let same = |a: &ValueId, b: &ValueId| {
            a == b || (known(a) && known(b) && self.affines.form(*a) == self.affines.form(*b))
        };
        let mut reads = false;
        walk(&par.body[before..], &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Load(a, index) = *program.op(*v)
                && a == array
            {
                reads |= !index.as_slice().iter().zip(own.as_slice()).all(|(a, b)| same(a, b));
            }
        });
        reads
    }

    /// May the loop run over more iterations than it was written with, which copy and do nothing else? Not where the
    /// range decides the order of a sum (law 8), nor where it is what tells iterations apart (`(i + k) % n`, law 7).
    fn may_widen(&self, par: &Par) -> Widening {
        let Some(facts) = self.pars.get(&par.id) else { return Widening::Unlawful };
        let sums = facts.sharing.values().any(|sharing| *sharing == Sharing::Reduce);
        let mut wraps = false;
        let mut touches = |array: ArrayId, index: &Indices| {
            let remainder = |v: &ValueId| {
                let atoms = self.affines.form(*v).terms.iter();
                atoms.into_iter().any(|(atom, _)| self.affines.remainder(self.source, *atom).is_some())
            };
            wraps |= facts.sharing.contains_key(&array) && index.as_slice().iter().any(remainder);
        };
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Store(s) | Stmt::Update(_, s) => touches(s.array, &s.index),
            Stmt::Let(v) => {
                if let Op::Load(array, index) = self.source.op(*v) {
                    touches(*array, index);
                }
            }
            _ => {}
        });
        if sums || wraps { Widening::Unlawful } else { Widening::Lawful }
    }

    /// Lets the loop run over the whole array, copying old elements outside its own range.
    fn extend(&self, w: &mut Writer, par: &mut Par, array: ArrayId, old: ArrayId) {
        let ranges = par.ranges.clone();
        let zero = w.index(0);
        for (k, range) in par.ranges.iter_mut().enumerate() {
            range.from = zero;
            range.to = w.dim(array, k);
        }
        let index: Vec<ValueId> = par.ranges.iter().map(|r| r.var).collect();
        let Some(index) = Indices::new(&index) else { return };
        let then = std::mem::take(&mut par.body);
        par.body = w.block(|w| {
            let inside = ranges.iter().fold(None, |inside, range| {
                let here = within(w, range.var, range.from, range.to);
                Some(both(w, inside, here))
            });
            let otherwise = w.block(|w| {
                let kept = w.load(old, index, None);
                w.store(array, index, kept, None);
            });
            if let Some(condition) = inside {
                w.push(Stmt::If(Branch { condition, then, otherwise }));
            }
        });
    }
}

/// The loads of an array before an iteration writes it; behind that it reads what it wrote.
fn loads_before_its_write(source: &Program, par: &Par, array: ArrayId) -> Vec<(ValueId, Indices)> {
    let writes = |s: &Stmt| matches!(s, Stmt::Store(s) | Stmt::Update(_, s) if s.array == array);
    let before = par.body.iter().position(writes).unwrap_or(par.body.len());
    let mut loads = Vec::new();
    walk(&par.body[..before], &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Load(a, index) = *source.op(*v)
            && a == array
        {
            loads.push((*v, index));
        }
    });
    loads
}
