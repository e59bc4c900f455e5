//! What the iterations of a parallel loop read after they have written it themselves.

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::{
    Affines, ArrayId, Block, Indices, Loop, LoopKind, Op, Par, Program, Stmt, ValueId, apart, walk,
};

/// Loads of what the same iteration has written.
#[derive(Debug, Default)]
pub(crate) struct StoreForwarding {
    /// Loads that give what was stored, and the value that was.
    pub forwarded: HashMap<ValueId, ValueId>,
    /// Arrays of which that is not known so simply: a run of the body over a copy tells.
    pub arrays: BTreeSet<ArrayId>,
}

/// The writes of arrays that an iteration has made, the last one last: at which index, and what, if that is known.
type Written = HashMap<ArrayId, Vec<(Indices, Option<ValueId>)>>;

/// Looks at the body of a parallel loop.
pub(crate) fn store_forwarding(source: &Program, affines: &Affines, par: &Par) -> StoreForwarding {
    let mut found = Finder { source, affines, par, apart: None, forwarding: StoreForwarding::default() };
    found.block(&par.body, &mut Written::new());
    let mut forwarding = found.forwarding;
    forwarding.forwarded.retain(
        |load, _| !matches!(source.op(*load), Op::Load(array, _) if forwarding.arrays.contains(array)),
    );
    forwarding
}

struct Finder<'a> {
    source: &'a Program,
    affines: &'a Affines,
    par: &'a Par,
    /// Loads and writes that never touch one element, once that was asked.
    apart: Option<BTreeSet<(ArrayId, Indices, Indices)>>,
    forwarding: StoreForwarding,
}

impl Finder<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, written: &mut Written) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    if let Op::Load(array, index) = *self.source.op(*v) {
                        match self.seen(written, array, index) {
                            Some((at, Some(value))) if self.same(at, index) => {
                                self.forwarding.forwarded.insert(*v, value);
                            }
                            Some(_) => drop(self.forwarding.arrays.insert(array)),
                            None => {}
                        }
                    }
                }
                Stmt::Store(s) => written.entry(s.array).or_default().push((s.index, Some(s.value))),
                Stmt::Update(_, s) => written.entry(s.array).or_default().push((s.index, None)),
                Stmt::If(branch) => {
                    for arm in [&branch.then, &branch.otherwise] {
                        self.block(arm, &mut written.clone());
                    }
                    forget(written, stmt, &BTreeSet::new());
                }
                _ => {
                    // A pass may read what an earlier one wrote, unless each has elements of its own.
                    let own = if let Stmt::Loop(l) = stmt { self.own(l) } else { BTreeSet::new() };
                    let before = written.clone();
                    forget(written, stmt, &own);
                    for inner in stmt.blocks() {
                        self.block(inner, &mut written.clone());
                    }
                    *written = before;
                    forget(written, stmt, &BTreeSet::new());
                }
            }
        }
    }

    /// The last write that a load may see.
    fn seen(
        &mut self,
        written: &Written,
        array: ArrayId,
        index: Indices,
    ) -> Option<(Indices, Option<ValueId>)> {
        let writes = written.get(&array)?;
        let last = writes.last().copied()?;
        if self.same(last.0, index) {
            return Some(last);
        }
        writes.iter().rev().find(|write| !self.are_apart(array, index, write.0)).copied()
    }

    fn are_apart(&mut self, array: ArrayId, load: Indices, write: Indices) -> bool {
        let (source, affines, par) = (self.source, self.affines, self.par);
        self.apart.get_or_insert_with(|| apart(source, affines, par)).contains(&(array, load, write))
    }

    fn same(&self, a: Indices, b: Indices) -> bool {
        let form = |v: &ValueId| self.affines.form(*v);
        a.as_slice().iter().map(form).eq(b.as_slice().iter().map(form))
    }

    /// The arrays of which each pass of a loop touches one element that no other pass does.
    fn own(&mut self, l: &Loop) -> BTreeSet<ArrayId> {
        let LoopKind::For { var, .. } = l.kind else { return BTreeSet::new() };
        let mut touched: HashMap<ArrayId, Vec<Indices>> = HashMap::new();
        let mut loads: HashMap<ArrayId, Vec<Indices>> = HashMap::new();
        let mut inside: BTreeSet<ValueId> = BTreeSet::new();
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                inside.insert(*v);
                if let Op::Load(array, index) = *self.source.op(*v) {
                    loads.entry(array).or_default().push(index);
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => touched.entry(s.array).or_default().push(s.index),
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
            _ => {}
        });
        // What is read and never written by any pass does not matter.
        for (array, writes) in &mut touched {
            let written = writes.clone();
            for load in loads.remove(array).unwrap_or_default() {
                if !written
                    .iter()
                    .all(|write| !self.same(load, *write) && self.are_apart(*array, load, *write))
                {
                    writes.push(load);
                }
            }
        }
        let own = |indices: &[Indices]| {
            let forms = |index: &Indices| {
                index.as_slice().iter().map(|v| self.affines.form(*v).clone()).collect::<Vec<_>>()
            };
            let first = forms(&indices[0]);
            let apart = |form: &ebbtide_ir::Affine| {
                form.coefficient(var) != 0 && form.without(var).terms.iter().all(|t| !inside.contains(&t.0))
            };
            first.iter().any(apart) && indices.iter().all(|index| forms(index) == first)
        };
        touched.into_iter().filter(|(_, indices)| own(indices)).map(|(array, _)| array).collect()
    }
}

/// What a statement writes in its blocks is known no more, but for some arrays.
fn forget(written: &mut Written, stmt: &Stmt, but: &BTreeSet<ArrayId>) {
    walk(std::slice::from_ref(stmt), &mut |inner| {
        if let Stmt::Store(s) | Stmt::Update(_, s) = inner
            && !but.contains(&s.array)
        {
            written.entry(s.array).or_default().push((s.index, None));
        }
    });
}
