//! Arrays in which a loop writes another row in each iteration, and keeps the earlier ones: they are their own tape.
//!
//! - Input: a counted loop at the top level of a program.
//! - Output: the arrays of which it never overwrites what one of its iterations has read.
//! - Invariant: when an iteration is reversed, after all later ones, every element that it read holds what it read. Where
//!   the array is [`Trajectory::Replaced`], an iteration that is run again finds what it found, whatever ran since.
//!
//! Proof, for `x[[t + 1, i]] = f(x[[t, i]])`: some dimension of every access is `k · t + rest + offset`, with one `k` and one
//! `rest` that is the same in all iterations. Rows that are written come later than rows that are read, so a row is
//! complete before it is read, and nothing writes it again. The sum or the difference of two indices does as well as one: the
//! diagonals of `x[[i, d - i]]` from `x[[i - 1, d - i]]` are such rows. Where rows lie one behind the other in a flat array,
//! `x[(t + 1) * n + i]` from `x[t * n + i]`, the ranges of the variables beside `t` say where a row ends ([`flat`]).

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affine, Affines, ArrayId, Combine, Indices, Loop, LoopKind, Op, Program, Stmt, ValueId, walk,
};

use crate::analysis::effects::swap_classes;

mod flat;

/// How a loop writes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trajectory {
    /// An iteration replaces what its row held: it can be run again.
    Replaced,
    /// An iteration adds to what its row holds: to be run again, it must find that as it was.
    Accumulated,
}

/// One access of an array.
struct Touch {
    index: Indices,
    kind: Kind,
    /// Which statement of the loop's body it stands in.
    at: usize,
    /// Does it stand in a loop inside the loop?
    repeated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Store,
    Add,
}

/// The trajectories of a loop.
pub(crate) fn trajectories(source: &Program, affines: &Affines, l: &Loop) -> BTreeMap<ArrayId, Trajectory> {
    let LoopKind::For { var, .. } = l.kind else { return BTreeMap::new() };
    let mut touches: BTreeMap<ArrayId, Vec<Touch>> = BTreeMap::new();
    let mut other: BTreeSet<ArrayId> = BTreeSet::new();
    let mut yields = false;
    for (at, stmt) in l.body.iter().enumerate() {
        collect(source, std::slice::from_ref(stmt), (at, false), &mut |touched| match touched {
            Touched::Element(array, touch) => touches.entry(array).or_default().push(touch),
            Touched::Whole(arrays) => other.extend(arrays),
            Touched::Host => yields = true,
        });
    }
    if yields {
        return BTreeMap::new();
    }
    let classes = swap_classes(source);
    let alone = |a: &ArrayId| classes.values().filter(|class| **class == classes[a]).count() == 1;
    let invariant = |v: ValueId| is_invariant(source, v, var);
    let judged = touches.iter().filter(|(array, _)| !other.contains(array) && alone(array));
    let ranges = flat::Ranges::of(source, affines, l);
    judged
        .filter_map(|(array, touches)| {
            let kind = kind(touches)?;
            let proved = by_rows(affines, var, touches, &invariant) || ranges.prove(touches, &invariant);
            proved.then_some((*array, kind))
        })
        .collect()
}

/// What a statement does to arrays.
enum Touched {
    Element(ArrayId, Touch),
    /// Something that is not looked into.
    Whole(Vec<ArrayId>),
    /// The host may change everything.
    Host,
}

/// The depth of recursion is that of nesting in the source.
fn collect(source: &Program, block: &[Stmt], (at, repeated): (usize, bool), found: &mut dyn FnMut(Touched)) {
    for stmt in block {
        match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, index) = *source.op(*v) {
                    found(Touched::Element(array, Touch { index, kind: Kind::Read, at, repeated }));
                }
            }
            Stmt::Store(s) => {
                found(Touched::Element(s.array, Touch { index: s.index, kind: Kind::Store, at, repeated }));
            }
            Stmt::Update(Combine::Add, s) => {
                found(Touched::Element(s.array, Touch { index: s.index, kind: Kind::Add, at, repeated }));
            }
            Stmt::Update(_, s) => found(Touched::Whole(vec![s.array])),
            Stmt::Claim(claim) => found(Touched::Whole(vec![claim.taken])),
            Stmt::Fill(array, ..) | Stmt::Temp(array) => found(Touched::Whole(vec![*array])),
            Stmt::Copy { from, to, .. } => found(Touched::Whole(vec![*from, *to])),
            Stmt::Swap(a, b) => found(Touched::Whole(vec![*a, *b])),
            Stmt::Library(call) => found(Touched::Whole(call.arrays().collect())),
            Stmt::Region(_) => found(Touched::Host),
            _ => {}
        }
        let inner = repeated || matches!(stmt, Stmt::Loop(_));
        stmt.blocks().for_each(|block| collect(source, block, (at, inner), found));
    }
}

/// Is the value the same in all iterations of the loop with this variable? It is made of what is known before.
pub(crate) fn is_invariant(source: &Program, v: ValueId, var: ValueId) -> bool {
    let mut work = vec![v];
    while let Some(v) = work.pop() {
        match source.op(v) {
            _ if v == var => return false,
            Op::LoopVar | Op::Load(..) | Op::Get(_) => return false,
            op => work.extend(op.operands()),
        }
    }
    true
}

/// How the writes change rows, if rows are all that they change.
fn kind(touches: &[Touch]) -> Option<Trajectory> {
    let mut writes = touches.iter().filter(|t| t.kind != Kind::Read).peekable();
    writes.peek()?;
    match writes.clone().all(|w| w.kind == Kind::Store) {
        true => Some(Trajectory::Replaced),
        // What is added again and again in one iteration cannot be told apart from what was there.
        false if writes.any(|w| w.repeated) => None,
        false => Some(Trajectory::Accumulated),
    }
}

/// Rows of an array: the elements of which a sum of indices, each taken once, not at all or with the other sign, is the same.
type Direction = Vec<(usize, i64)>;

/// The dimensions of an array of this rank, and the diagonals of its planes.
fn directions(rank: usize) -> Vec<Direction> {
    let pairs = (0..rank).flat_map(|a| (a + 1..rank).map(move |b| (a, b)));
    let diagonals = pairs.flat_map(|(a, b)| [vec![(a, 1), (b, 1)], vec![(a, 1), (b, -1)]]);
    (0..rank).map(|d| vec![(d, 1)]).chain(diagonals).collect()
}

/// Is there a direction in which all writes of an iteration have one index, and reads earlier ones?
fn by_rows(affines: &Affines, var: ValueId, touches: &[Touch], invariant: &dyn Fn(ValueId) -> bool) -> bool {
    let (reads, writes): (Vec<&Touch>, Vec<&Touch>) = touches.iter().partition(|t| t.kind == Kind::Read);
    let Some(first) = writes.first() else { return false };
    let rank = first.index.as_slice().len();
    let row = |touch: &Touch, direction: &Direction| {
        let index = touch.index.as_slice();
        let mut indices = direction.iter().map(|(d, sign)| (affines.form(index[*d]), *sign));
        indices.try_fold(Affine::default(), |sum, (form, sign)| sum.add_scaled(form, sign))
    };
    let proves = |direction: Direction| {
        let Some(written) = row(first, &direction) else { return false };
        let step = written.coefficient(var);
        let known = written.without(var).terms.iter().all(|(atom, _)| invariant(*atom));
        // How much later than the first write's row is a row in this direction?
        let later = |touch: &Touch| {
            let apart: Affine = row(touch, &direction)?.add_scaled(&written, -1)?;
            apart.as_constant()?.checked_mul(step.signum())
        };
        let read_is_before = |r: &&Touch| {
            let after = writes.iter().all(|w| r.at > w.at);
            later(r).is_some_and(|later| later < 0 || (later == 0 && after))
        };
        step != 0 && known && writes.iter().all(|w| later(w) == Some(0)) && reads.iter().all(read_is_before)
    };
    directions(rank).into_iter().any(proves)
}

/// The arrays that a loop writes.
pub(crate) fn written_in(l: &Loop) -> BTreeSet<ArrayId> {
    let mut written = BTreeSet::new();
    walk(&l.body, &mut |stmt| {
        if let Stmt::Store(s) | Stmt::Update(_, s) = stmt {
            written.insert(s.array);
        }
    });
    written
}
