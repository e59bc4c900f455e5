//! What the iterations of a parallel loop read after they have written it themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Affines, ArrayId, Block, Indices, Loop, LoopKind, Op, Par, Program, Stmt, ValueId, apart, walk,
};

/// The values that a loop leaves in arrays, and where.
pub(crate) type Left = BTreeMap<ValueId, (ArrayId, Indices)>;

/// Loads of what the same iteration has written.
#[derive(Debug, Default)]
pub(crate) struct StoreForwarding {
    /// Loads that give what was stored, and the value that was.
    pub forwarded: HashMap<ValueId, ValueId>,
    /// Loads that give what the last of these stores put where it is at their index, or what was there before: a comparison of
    /// indices tells.
    pub compared: HashMap<ValueId, Vec<(Indices, ValueId)>>,
    /// Arrays of which that is not known so simply: a run of the body over a copy tells.
    pub arrays: BTreeSet<ArrayId>,
    /// Values that need not be computed again: where the loop left them.
    pub left: Left,
}

impl StoreForwarding {
    /// Are there loads of which it is not known before the loop runs whether they give what the iteration stored?
    pub fn is_undecided(&self) -> bool {
        !self.arrays.is_empty() || !self.compared.is_empty()
    }

    /// The arrays of these loads.
    pub fn undecided(&self, source: &Program) -> BTreeSet<ArrayId> {
        let array = |v: &ValueId| if let Op::Load(array, _) = source.op(*v) { Some(*array) } else { None };
        self.arrays.iter().copied().chain(self.compared.keys().filter_map(array)).collect()
    }
}

/// Indices are compared with those of at most this many stores: beyond, a copy costs less.
const MOST_STORES: usize = 4;

/// The writes of arrays that an iteration has made, the last one last: at which index, and what, if that is known.
type Written = HashMap<ArrayId, Vec<Write>>;
type Write = (Indices, Option<ValueId>);

/// Does a statement stand in a branch or a loop of the body?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Yes,
    No,
}

/// Looks at the body of a parallel loop.
pub(crate) fn store_forwarding(source: &Program, affines: &Affines, par: &Par) -> StoreForwarding {
    let mut found = Finder {
        source,
        affines,
        par,
        apart: None,
        undecided: Vec::new(),
        forwarding: StoreForwarding::default(),
    };
    found.block(&par.body, &mut Written::new(), Nested::No);
    found.compare();
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
    /// Loads of which it is not known what they give, where they stand, and the writes before them.
    undecided: Vec<(ValueId, Nested, Vec<Write>)>,
    forwarding: StoreForwarding,
}

impl Finder<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, written: &mut Written, nested: Nested) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    if let Op::Load(array, index) = *self.source.op(*v) {
                        match self.seen(written, array, index) {
                            Some((at, Some(value))) if self.same(at, index) => {
                                self.forwarding.forwarded.insert(*v, value);
                            }
                            Some(_) => {
                                self.forwarding.arrays.insert(array);
                                self.undecided.push((*v, nested, written[&array].clone()));
                            }
                            None => {}
                        }
                    }
                }
                Stmt::Store(s) => written.entry(s.array).or_default().push((s.index, Some(s.value))),
                Stmt::Update(_, s) => written.entry(s.array).or_default().push((s.index, None)),
                Stmt::If(branch) => {
                    for arm in [&branch.then, &branch.otherwise] {
                        self.block(arm, &mut written.clone(), Nested::Yes);
                    }
                    forget(written, stmt, &BTreeSet::new());
                }
                _ => {
                    // An iteration may read what an earlier one wrote, unless each has elements of its own.
                    let own = if let Stmt::Loop(l) = stmt { self.own(l) } else { BTreeSet::new() };
                    let before = written.clone();
                    forget(written, stmt, &own);
                    for inner in stmt.blocks() {
                        self.block(inner, &mut written.clone(), Nested::Yes);
                    }
                    *written = before;
                    forget(written, stmt, &BTreeSet::new());
                }
            }
        }
    }

    /// Lets indices be compared where the body itself stores to an array, nothing inside of it does, and few times.
    fn compare(&mut self) {
        let mut stores: HashMap<ArrayId, usize> = HashMap::new();
        let mut others: BTreeSet<ArrayId> = BTreeSet::new();
        walk(&self.par.body, &mut |stmt| match stmt {
            Stmt::Store(s) => *stores.entry(s.array).or_default() += 1,
            Stmt::Update(_, s) => drop(others.insert(s.array)),
            Stmt::Claim(claim) => others.extend([claim.array, claim.taken]),
            _ => {}
        });
        let own = |array: ArrayId| {
            self.par.body.iter().filter(|stmt| matches!(stmt, Stmt::Store(s) if s.array == array)).count()
        };
        let may_compare = |array: &ArrayId| {
            let count = own(*array);
            !others.contains(array) && stores.get(array) == Some(&count) && count <= MOST_STORES
        };
        let mut arrays: BTreeSet<ArrayId> =
            self.forwarding.arrays.iter().copied().filter(may_compare).collect();
        let array = |v: ValueId| if let Op::Load(array, _) = self.source.op(v) { Some(*array) } else { None };
        for (v, ..) in self.undecided.iter().filter(|load| load.1 == Nested::Yes) {
            if let Some(array) = array(*v) {
                arrays.remove(&array);
            }
        }
        for (v, _, writes) in std::mem::take(&mut self.undecided) {
            let Op::Load(array, index) = *self.source.op(v) else { continue };
            if !arrays.contains(&array) {
                continue;
            }
            let stores = writes.into_iter().filter_map(|(at, value)| Some((at, value?)));
            let stores: Vec<(Indices, ValueId)> =
                stores.filter(|(at, _)| !self.are_apart(array, index, *at)).collect();
            self.forwarding.compared.insert(v, stores);
        }
        self.forwarding.arrays.retain(|array| !arrays.contains(array));
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

    /// The arrays of which each iteration of a loop touches one element that no other iteration does.
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
        // What is read and never written by any iteration does not matter.
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
