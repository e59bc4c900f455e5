//! Which writes of a loop overwrite what its iterations have read.
//!
//! - Input: a counted loop at the top level of a program, and the loads of it that its reversal reads.
//! - Output: the loads at program level whose elements no later write of the loop touches, and the writes that touch no
//!   element which such a load, or one in a parallel loop, has read before.
//! - Invariant: when an iteration is reversed, after all later ones, each element that it loads so holds what it held then, although
//!   nothing recorded it.
//!
//! Proof, for `a[[i, j]] -= a[[i, k]] * a[[k, j]]` with `i, j > k` in a loop over `k`: a write in iteration `k` has a column
//! greater than `k`, a read before it has a column of at most `k`. In some dimension the difference of the indices has a sign, for
//! all iterations of the reads that are not after those of the write.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affine, Affines, ArrayId, Combine, Indices, Loop, LoopKind, Op, Program, Stmt, ValueId, WriteId,
};

use crate::analysis::effects::swap_classes;
use crate::analysis::iteration_number::Level;
use crate::analysis::trajectory::is_invariant;

/// What a loop leaves as it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overwritten {
    /// Loads at program level that find the same when their iteration is reversed.
    pub reloaded: BTreeSet<ValueId>,
    /// Writes that overwrite nothing that the reversal reads.
    pub harmless: BTreeSet<WriteId>,
    /// The arrays of which all writes in the loop are harmless.
    pub intact: BTreeSet<ArrayId>,
    /// The arrays of which some are.
    spared: BTreeSet<ArrayId>,
}

impl Overwritten {
    /// Do some writes of the array overwrite nothing that the reversal reads, so that they go unrecorded?
    pub fn spares(&self, array: ArrayId) -> bool {
        self.spared.contains(&array)
    }
}

/// One access of an element.
struct Access {
    array: ArrayId,
    index: Indices,
    kind: Kind,
    /// For each sequential loop around it, the outermost first: which statement of that loop's body it stands in.
    path: Vec<usize>,
    /// The loops around it, inside the loop, parallel ones included.
    levels: Vec<Level>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// At program level.
    Load(ValueId),
    /// In a parallel loop.
    ParallelLoad(ValueId),
    Write(WriteId),
}

/// Where loads stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Program,
    ParallelLoop,
}

impl Access {
    /// The value that it loads.
    fn load(&self) -> Option<ValueId> {
        match self.kind {
            Kind::Load(v) | Kind::ParallelLoad(v) => Some(v),
            Kind::Write(_) => None,
        }
    }

    fn write(&self) -> Option<WriteId> {
        if let Kind::Write(id) = self.kind { Some(id) } else { None }
    }
}

/// A variable, and what bounds it where that is a sum of variables and of what is the same in all iterations.
type Ranged = (ValueId, Option<Affine>, Option<Affine>);

/// Looks at a loop; `needed` has the values that its reversal reads.
pub(crate) fn overwritten(
    (source, affines): (&Program, &Affines),
    l: &Loop,
    needed: &BTreeSet<ValueId>,
) -> Overwritten {
    let LoopKind::For { var, from, to } = l.kind else { return Overwritten::default() };
    let mut found =
        Collected { source, accesses: Vec::new(), opaque: BTreeSet::new(), yields: false, uncounted: 0 };
    found.body(&l.body, &mut Vec::new(), Within::Program, &mut Vec::new());
    if found.yields {
        return Overwritten::default();
    }
    let classes = swap_classes(source);
    let mut members: BTreeMap<ArrayId, usize> = BTreeMap::new();
    classes.values().for_each(|class| *members.entry(*class).or_default() += 1);
    let clear = |a: &Access| members[&classes[&a.array]] == 1 && !found.opaque.contains(&a.array);
    let judge = Judge { source, affines, level: Level { var, from, to } };
    let (writes, loads): (Vec<&Access>, Vec<&Access>) =
        found.accesses.iter().filter(|a| clear(a)).partition(|a| a.write().is_some());
    let is_read = |r: &&Access| r.load().is_some_and(|v| needed.contains(&v));
    let read: Vec<&Access> = loads.into_iter().filter(is_read).collect();
    let touches = |w: &Access, r: &Access| w.array == r.array && !judge.are_apart(w, r);
    let mut out = Overwritten::default();
    for r in &read {
        if let Kind::Load(v) = r.kind
            && !writes.iter().any(|w| touches(w, r))
        {
            out.reloaded.insert(v);
        }
    }
    let stays = |r: &&&Access| match r.kind {
        Kind::Load(v) => out.reloaded.contains(&v),
        _ => true,
    };
    let read: Vec<&Access> = read.iter().filter(stays).copied().collect();
    let (harmless, harmful): (Vec<&Access>, Vec<&Access>) =
        writes.iter().partition(|w| !read.iter().any(|r| touches(w, r)));
    out.intact = harmless.iter().map(|w| w.array).collect();
    out.spared.clone_from(&out.intact);
    out.harmless = harmless.iter().filter_map(|w| w.write()).collect();
    for w in harmful {
        out.intact.remove(&w.array);
    }
    out
}

/// The accesses of a loop's body.
struct Collected<'a> {
    source: &'a Program,
    accesses: Vec<Access>,
    /// Arrays that are used as wholes.
    opaque: BTreeSet<ArrayId>,
    yields: bool,
    /// How many loops are around what is looked at in which iterations are not told apart.
    uncounted: usize,
}

impl Collected<'_> {
    /// The body of a sequential loop. The depth of recursion is that of nesting in the source, here and below.
    fn body(&mut self, body: &[Stmt], path: &mut Vec<usize>, within: Within, levels: &mut Vec<Level>) {
        for (at, stmt) in body.iter().enumerate() {
            path.push(at);
            self.statement(stmt, path, within, levels);
            path.pop();
        }
    }

    fn statement(&mut self, stmt: &Stmt, path: &mut Vec<usize>, within: Within, levels: &mut Vec<Level>) {
        let mut access = |array, index, kind| {
            let (path, levels) = (path.clone(), levels.clone());
            self.accesses.push(Access { array, index, kind, path, levels });
        };
        match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, index) = *self.source.op(*v) {
                    let load = match within {
                        Within::Program => Kind::Load(*v),
                        Within::ParallelLoop => Kind::ParallelLoad(*v),
                    };
                    access(array, index, load);
                }
            }
            Stmt::Store(s) | Stmt::Update(Combine::Add, s) => access(s.array, s.index, Kind::Write(s.id)),
            Stmt::Update(_, s) => drop(self.opaque.insert(s.array)),
            Stmt::Claim(claim) => self.opaque.extend([claim.array, claim.taken]),
            Stmt::Fill(array, ..) | Stmt::Temp(array) => drop(self.opaque.insert(*array)),
            Stmt::Copy { from, to, .. } => self.opaque.extend([*from, *to]),
            Stmt::Swap(a, b) => self.opaque.extend([*a, *b]),
            Stmt::Library(call) => self.opaque.extend(call.arrays()),
            Stmt::Region(_) => self.yields = true,
            _ => {}
        }
        let outer = levels.len();
        match stmt {
            // Iterations of a loop that does not count are in no order that its variables tell.
            Stmt::Loop(l) => {
                match Level::of(l).filter(|_| within == Within::Program && self.uncounted == 0) {
                    Some(level) => {
                        levels.push(level);
                        self.body(&l.body, path, within, levels);
                    }
                    None => {
                        levels.extend(Level::of(l));
                        self.uncounted += 1;
                        self.blocks(stmt, path, within, levels);
                        self.uncounted -= 1;
                    }
                }
            }
            Stmt::Par(par) => {
                levels.extend(par.ranges.iter().map(|r| Level { var: r.var, from: r.from, to: r.to }));
                self.blocks(stmt, path, Within::ParallelLoop, levels);
            }
            _ => self.blocks(stmt, path, within, levels),
        }
        levels.truncate(outer);
    }

    /// Blocks in which it is not looked at what comes first.
    fn blocks(&mut self, stmt: &Stmt, path: &mut Vec<usize>, within: Within, levels: &mut Vec<Level>) {
        for inner in stmt.blocks().flatten() {
            self.statement(inner, path, within, levels);
        }
    }
}

/// How the iteration of a read is to that of a write, in the loop that is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Before,
    Same,
}

struct Judge<'a> {
    source: &'a Program,
    affines: &'a Affines,
    level: Level,
}

impl Judge<'_> {
    /// Is no element that the write touches one that the load has read before?
    ///
    /// A load is before a write where, of the sequential loops around both, the first one in which their iterations differ is in an
    /// earlier iteration for the load; or where they do not differ, and the load does not stand behind the write.
    fn are_apart(&self, w: &Access, r: &Access) -> bool {
        let sequential = w.path.len().min(r.path.len()) - 1;
        let shared = w.levels.iter().zip(&r.levels).take(sequential).take_while(|(a, b)| a == b).count();
        let first_different = (0..=shared).all(|k| self.are_apart_where(w, r, k, Order::Before));
        let behind = w.path.get(shared) < r.path.get(shared);
        first_different && (behind || self.are_apart_where(w, r, shared, Order::Same))
    }

    /// The same, where the iterations of the first `same` loops are the same, and the next one is as said.
    fn are_apart_where(&self, w: &Access, r: &Access, same: usize, order: Order) -> bool {
        let around = |access: &Access| [&[self.level], access.levels.as_slice()].concat();
        let (of_write, of_read) = (around(w), around(r));
        let equal = same + usize::from(order == Order::Same);
        // Where the iterations may differ, the variables of the read have other names.
        let name = |k: usize, var: ValueId| match k < equal {
            true => var,
            false => ValueId::from_index(self.source.values.len() + k),
        };
        let names: BTreeMap<ValueId, ValueId> =
            of_read.iter().enumerate().map(|(k, level)| (level.var, name(k, level.var))).collect();
        let clear = |v: ValueId, levels: &[Level]| {
            let sum = self.affines.form(v);
            let own = |atom: &ValueId| levels.iter().any(|level| level.var == *atom);
            let known = |atom: &ValueId| own(atom) || is_invariant(self.source, *atom, self.level.var);
            sum.terms.iter().all(|(atom, _)| known(atom)).then(|| sum.clone())
        };
        let first = |v: ValueId| clear(v, &of_write);
        let other = |v: ValueId| rename(&clear(v, &of_read)?, &names);
        let mut ranges: Vec<Ranged> = of_write.iter().map(|l| (l.var, first(l.from), first(l.to))).collect();
        for (k, level) in of_read.iter().enumerate().skip(equal) {
            // Ends are behind the last iteration.
            let earlier = || Affine { terms: vec![(level.var, 1)], constant: 0 };
            let end = if k == equal && order == Order::Before { Some(earlier()) } else { other(level.to) };
            ranges.push((names[&level.var], other(level.from), end));
        }
        let pairs = w.index.as_slice().iter().zip(r.index.as_slice());
        pairs.into_iter().any(|(a, b)| {
            let (Some(a), Some(b)) = (first(*a), other(*b)) else { return false };
            let Some(apart) = a.add_scaled(&b, -1) else { return false };
            let least = extreme(&apart, &ranges, -1);
            let most = extreme(&apart, &ranges, 1).and_then(|most| Affine::default().add_scaled(&most, -1));
            [least, most].into_iter().flatten().any(|sum| self.is_positive(&sum))
        })
    }

    /// Is the sum certain to be positive? Extents are not negative.
    fn is_positive(&self, sum: &Affine) -> bool {
        let natural =
            |v: ValueId| v.index() < self.source.values.len() && matches!(self.source.op(v), Op::Dim(..));
        sum.constant > 0 && sum.terms.iter().all(|(atom, c)| *c > 0 && natural(*atom))
    }
}

/// The largest (`side` 1) or least (-1) value of a sum over these variables, the last one first.
fn extreme(sum: &Affine, over: &[Ranged], side: i64) -> Option<Affine> {
    let mut sum = sum.clone();
    for (var, from, to) in over.iter().rev() {
        let c = sum.coefficient(*var);
        if c == 0 {
            continue;
        }
        let at_end = c.signum() == side;
        sum = sum.without(*var).add_scaled(if at_end { to } else { from }.as_ref()?, c)?;
        if at_end {
            sum.constant = sum.constant.checked_sub(c)?;
        }
    }
    Some(sum)
}

/// The sum with other names for some variables.
fn rename(sum: &Affine, names: &BTreeMap<ValueId, ValueId>) -> Option<Affine> {
    let constant = Affine { terms: Vec::new(), constant: sum.constant };
    sum.terms.iter().try_fold(constant, |all, (atom, c)| {
        let atom = names.get(atom).copied().unwrap_or(*atom);
        all.add_scaled(&Affine { terms: vec![(atom, 1)], constant: 0 }, *c)
    })
}
