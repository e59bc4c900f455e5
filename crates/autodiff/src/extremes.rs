//! Derivatives of `min_assign` and `max_assign`.
//!
//! What an element becomes is what the winner put there: its derivative goes to the winner. Where several are equal,
//! the element's old value among them, they share it equally. So three things are known before anything flows: the
//! old elements, the new ones (*best*), and how many are equal to the new ones (*ties*).

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Binary, Block, Combine, Compare, Indices, Op, Par, Program, Range, Role, Site, Stmt, Store,
    ValueId, walk,
};

use crate::activity::Activity;
use crate::error::Error;
use crate::writer::Writer;

/// The arrays beside one that takes minima or maxima.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extreme {
    /// The elements as they become.
    pub best: ArrayId,
    /// How many of what was there and what was combined are equal to them.
    pub ties: ArrayId,
}

pub(crate) type Extremes = BTreeMap<ArrayId, Extreme>;

/// The active arrays that a block takes minima or maxima into.
pub(crate) fn extreme_arrays(activity: &Activity, block: &[Stmt]) -> BTreeSet<ArrayId> {
    let mut arrays = BTreeSet::new();
    walk(block, &mut |stmt| {
        if let Stmt::Update(Combine::Min | Combine::Max, s) = stmt
            && activity.arrays.contains(&s.array)
        {
            arrays.insert(s.array);
        }
    });
    arrays
}

/// Is the array used in a parallel loop that takes its minima or maxima for nothing else?
pub(crate) fn check(source: &Program, par: &Par, array: ArrayId) -> Result<(), Error> {
    let (mut ways, mut other) = (BTreeSet::new(), false);
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Update(how, s) if s.array == array => drop(ways.insert(format!("{how:?}"))),
        Stmt::Store(s) if s.array == array => other = true,
        Stmt::Let(v) => other |= matches!(source.op(*v), Op::Load(a, _) if *a == array),
        _ => {}
    });
    if ways.len() == 1 && !other {
        return Ok(());
    }
    let name = &source.array(array).name;
    Err(Error::Unsupported {
        program: source.name.clone(),
        what: format!(
            "a parallel loop that takes minima or maxima of `{name}` and uses it in another way too: use a second loop"
        ),
    })
}

/// Declares the arrays beside one, of its shape.
pub(crate) fn declare(w: &mut Writer, source: &Program, array: ArrayId, shape: Vec<ValueId>) -> Extreme {
    let decl = source.array(array);
    let mut temp = |what: &str| {
        let name = format!("{what}_{}", decl.name);
        let id = w.array(name, decl.ty, decl.rank, Role::Temp(shape.clone()));
        w.push(Stmt::Temp(id));
        id
    };
    Extreme { best: temp("best"), ties: temp("ties") }
}

/// One where the values are equal, else zero.
fn equal(w: &mut Writer, a: ValueId, b: ValueId) -> ValueId {
    let (one, zero) = (w.real(w.ty(a), 1.0), w.real(w.ty(a), 0.0));
    let same = w.compare(Compare::Eq, a, b);
    w.select(same, one, zero)
}

/// What flows between an element and one of those that it was made of.
fn share(w: &mut Writer, from: ValueId, best: ValueId, flowing: ValueId, ties: ValueId) -> ValueId {
    let zero = w.real(w.ty(flowing), 0.0);
    let part = w.div(flowing, ties);
    let wins = w.compare(Compare::Eq, from, best);
    let share = w.select(wins, part, zero);
    w.mask(share)
}

impl Extreme {
    /// Before any is combined: what the old elements count for.
    pub fn begin_ties(&self, w: &mut Writer, array: ArrayId) {
        each_element(w, array, |w, index| {
            let (old, best) = (w.load(array, index, None), w.load(self.best, index, None));
            let one = equal(w, old, best);
            w.store(self.ties, index, one, None);
        });
    }

    /// Counts what an iteration combines.
    pub fn count(&self, w: &mut Writer, index: Indices, value: ValueId, site: Option<Site>) {
        let best = w.load(self.best, index, site.clone());
        let one = equal(w, value, best);
        w.accumulate(self.ties, index, one, site);
    }

    /// What flows between an element and a value combined into it.
    pub fn part(&self, w: &mut Writer, index: Indices, value: ValueId, flowing: ValueId) -> ValueId {
        let (best, ties) = (w.load(self.best, index, None), w.load(self.ties, index, None));
        share(w, value, best, flowing, ties)
    }

    /// Leaves in `carrier`, a shadow or tangent of `array`, what flows between the new elements and the old ones.
    pub fn keep_olds_part(&self, w: &mut Writer, array: ArrayId, carrier: ArrayId) {
        each_element(w, array, |w, index| {
            let (old, flowing) = (w.load(array, index, None), w.load(carrier, index, None));
            let kept = self.part(w, index, old, flowing);
            w.store(carrier, index, kept, None);
        });
    }
}

/// The shares of the old element and of the value in one update at program level.
pub(crate) struct Duel {
    old: ValueId,
    value: ValueId,
    best: ValueId,
    ties: ValueId,
}

impl Duel {
    pub fn new(w: &mut Writer, how: Combine, old: ValueId, value: ValueId) -> Duel {
        let op = if how == Combine::Min { Binary::Min } else { Binary::Max };
        let best = w.binary(op, old, value);
        let (first, second) = (equal(w, old, best), equal(w, value, best));
        Duel { old, value, best, ties: w.add(first, second) }
    }

    pub fn olds_part(&self, w: &mut Writer, flowing: ValueId) -> ValueId {
        share(w, self.old, self.best, flowing, self.ties)
    }

    pub fn values_part(&self, w: &mut Writer, flowing: ValueId) -> ValueId {
        share(w, self.value, self.best, flowing, self.ties)
    }
}

/// Writes a parallel loop over all elements of an array; for an array of rank 0 the statements alone.
pub(crate) fn each_element(w: &mut Writer, array: ArrayId, write: impl FnOnce(&mut Writer, Indices)) {
    let zero = w.index(0);
    let ranges: Vec<Range> = (0..w.program.array(array).rank)
        .map(|d| {
            let to = w.dim(array, d);
            Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
        })
        .collect();
    let at: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
    let Some(index) = Indices::new(&at) else { return };
    if ranges.is_empty() {
        return write(w, index);
    }
    let body: Block = w.block(|w| write(w, index));
    let id = w.new_par();
    w.push(Stmt::Par(Par::over(id, ranges, body)));
}

/// Combines into the best elements what a loop combines into an array.
pub(crate) fn find(w: &mut Writer, extreme: Extreme, how: Combine, s: &Store) {
    w.push(Stmt::Update(how, Store { array: extreme.best, ..s.clone() }));
}
