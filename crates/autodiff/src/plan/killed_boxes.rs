//! Boxes of elements that a parallel loop kills: it stores to all of them and reads none, so that nothing flows to what they held.
//!
//! - Input: the program as it is differentiated, and the facts about it.
//! - Output: for each parallel loop, the arrays of which it kills a box, and the bounds of the box.
//! - Invariant: a box has the same elements whenever the program asks for it. Its bounds are sums of extents that never change, of
//!   scalar arguments, and of values that are computed once, outside of loops and branches.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affine, Affines, ArrayId, Op, Par, ParId, Program, Stmt, ValueId, walk_program_level};

use crate::analysis::activity::{Activity, active_loads};
use crate::analysis::effects::{only_store, swap_classes, written_by};
use crate::analysis::index_inverse::{identity, is_replaced};

/// A box of elements, in order of their first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BoxId(usize);

/// The first index of a dimension, and the one after the last.
type Span = (Affine, Affine);

/// The boxes of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct KilledBoxes {
    boxes: Vec<Vec<Span>>,
    /// The box over which a parallel loop runs.
    of_loops: BTreeMap<ParId, BoxId>,
    killed: BTreeMap<(ParId, ArrayId), BoxId>,
}

impl KilledBoxes {
    /// The boxes that parallel loops kill, but for arrays of which they kill all.
    pub fn new(source: &Program, affines: &Affines, activity: &Activity) -> KilledBoxes {
        let mut bounds = Bounds::of(source, affines);
        let mut found = KilledBoxes::default();
        walk_program_level(&source.body, &mut |stmt| {
            let Stmt::Par(par) = stmt else { return };
            let Some(spans) = bounds.spans(par) else { return };
            let known = found.boxes.iter().position(|other| *other == spans);
            let id = BoxId(known.unwrap_or(found.boxes.len()));
            if known.is_none() {
                found.boxes.push(spans);
            }
            found.of_loops.insert(par.id, id);
            let read: BTreeSet<ArrayId> =
                active_loads(source, activity, &par.body).iter().map(|load| load.1).collect();
            let killed = written_by(par).into_iter().filter(|array| {
                activity.arrays.contains(array)
                    && !read.contains(array)
                    && par.body.iter().any(|s| matches!(s, Stmt::Store(s) if s.array == *array))
                    && only_store(par, *array).is_some_and(|store| identity(affines, par, store.index))
                    && !is_replaced(source, affines, par, *array)
            });
            found.killed.extend(killed.map(|array| ((par.id, array), id)));
        });
        found
    }

    /// The box of an array that a parallel loop kills.
    pub fn killed_by(&self, par: ParId, array: ArrayId) -> Option<BoxId> {
        self.killed.get(&(par, array)).copied()
    }

    /// All boxes of an array that a parallel loop kills.
    pub fn of_loop(&self, par: ParId) -> impl Iterator<Item = (ArrayId, BoxId)> {
        let of_loop =
            self.killed.range((par, ArrayId::from_index(0))..).take_while(move |entry| entry.0.0 == par);
        of_loop.map(|(at, id)| (at.1, *id))
    }

    /// Does the loop run over this box?
    pub fn runs_over(&self, par: ParId, id: BoxId) -> bool {
        self.of_loops.get(&par) == Some(&id)
    }

    /// Its bounds, in each dimension.
    pub fn bounds(&self, id: BoxId) -> &[Span] {
        self.boxes.get(id.0).map_or(&[], Vec::as_slice)
    }

    /// Takes the elements of these boxes for ordinary ones.
    pub fn forget(&mut self, boxes: &BTreeSet<BoxId>) {
        self.killed.retain(|_, id| !boxes.contains(id));
    }
}

/// Finds bounds that never change.
struct Bounds<'a> {
    source: &'a Program,
    affines: &'a Affines,
    classes: BTreeMap<ArrayId, ArrayId>,
    /// Values that are computed once.
    once: BTreeSet<ValueId>,
    /// One value for each extent and scalar argument.
    chosen: Vec<ValueId>,
}

impl<'a> Bounds<'a> {
    fn of(source: &'a Program, affines: &'a Affines) -> Bounds<'a> {
        let once = source.body.iter().filter_map(|stmt| match stmt {
            Stmt::Let(v) => Some(*v),
            _ => None,
        });
        let once = once.collect();
        Bounds { source, affines, classes: swap_classes(source), once, chosen: Vec::new() }
    }

    /// The ranges of a loop, where they never change.
    fn spans(&mut self, par: &Par) -> Option<Vec<Span>> {
        par.ranges.iter().map(|range| Some((self.fixed(range.from)?, self.fixed(range.to)?))).collect()
    }

    /// The sum that a value is, of values that stand for what never changes.
    fn fixed(&mut self, v: ValueId) -> Option<Affine> {
        let form = self.affines.form(v);
        let mut sum = Affine { terms: Vec::new(), constant: form.constant };
        for (atom, by) in &form.terms {
            let term = Affine { terms: vec![(self.choose(*atom)?, 1)], constant: 0 };
            sum = sum.add_scaled(&term, *by)?;
        }
        Some(sum)
    }

    /// The value that stands for an atom.
    fn choose(&mut self, atom: ValueId) -> Option<ValueId> {
        let same = |chosen: &ValueId| match (self.source.op(*chosen), self.source.op(atom)) {
            (Op::Dim(a, k), Op::Dim(b, l)) => k == l && self.affines.same_shape(*a, *b),
            (a, b) => *chosen == atom || matches!((a, b), (Op::Scalar(a), Op::Scalar(b)) if a == b),
        };
        if let Some(chosen) = self.chosen.iter().find(|chosen| same(chosen)) {
            return Some(*chosen);
        }
        let lasts = match self.source.op(atom) {
            Op::Dim(array, _) => self.keeps_shape(*array),
            Op::Scalar(_) => true,
            _ => self.once.contains(&atom),
        };
        lasts.then(|| {
            self.chosen.push(atom);
            atom
        })
    }

    /// Has whatever the array is called the same shape?
    fn keeps_shape(&self, array: ArrayId) -> bool {
        let class = self.classes.get(&array);
        self.classes.iter().all(|(other, of)| Some(of) != class || self.affines.same_shape(*other, array))
    }
}
