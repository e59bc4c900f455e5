//! Rows of a trajectory's shadow to which nothing has been added when a parallel loop of a reversed iteration gathers into them.
//!
//! - Input: a loop at the top level, and an array that is its own tape there.
//! - Output: the parallel loop whose reversal is the first to touch a row of the shadow, and these rows.
//! - Invariant: when that reversal comes to a row, all that was added to the row is zero: what it gathers can be stored. Whatever
//!   reads a row of the shadow comes later, or the row is not one of these.
//!
//! Proof, for `x[[t + 1, i]] = f(x[[t, i - 1]], x[[t, i]])`: iteration `t` alone reads row `t`, and reversed it adds to that row of the
//! shadow before iteration `t - 1` takes what flows to it. Statements behind the loop read rows behind `steps - 1`, and write none.
//! The same holds of stripes of a flat array, `x[(t + 1) * n + i]` from `x[t * n + i]`.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affine, Affines, ArrayId, Indices, Op, Par, ParId, Program, Range, Stmt, ValueId,
    depends_on_arguments_alone, walk,
};

use crate::analysis::activity::Activity;
use crate::analysis::effects::changes;
use crate::analysis::polynomial::{Atom, Polynomial};
use crate::analysis::subarray::{Bounds, Stripes, Subarray, is_at_most};
use crate::analysis::top_level::TopLevel;
use crate::analysis::written_first::{counted, stripes};

/// Rows that the reversal of a parallel loop is the first to add to.
#[derive(Clone, Debug)]
pub(crate) struct FirstRows {
    pub par: ParId,
    pub rows: Subarray,
}

/// The rows of an array that the loop at `position` reads, where the reversal of one parallel loop is the first to add to them.
pub(crate) fn first_rows(
    source: &Program,
    affines: &Affines,
    activity: &Activity,
    (position, array): (TopLevel, ArrayId),
) -> Option<FirstRows> {
    let Some(Stmt::Loop(l)) = position.stmt(source) else { return None };
    let judge = Judge { source, affines, array, time: counted(source, l)? };
    let active = |v: &ValueId| activity.values.contains(v);
    let all: BTreeSet<ValueId> = judge.loads(&l.body).into_iter().filter(active).collect();
    let par = l.body.iter().find_map(|stmt| match stmt {
        Stmt::Par(par) if judge.loads(&par.body).iter().any(|v| all.contains(v)) => Some(par),
        _ => None,
    })?;
    let here = judge.loads(&par.body);
    let behind = position.behind(source).to_vec();
    let others = !all.iter().all(|v| here.contains(v))
        || taken_as_whole(&behind, array)
        || changes(source, &behind).contains(&array);
    if others {
        return None;
    }
    let rows =
        (judge.rows(&all, &l.body, &behind).map(|(dimension, rows)| Subarray::Box(vec![(dimension, rows)])))
            .or_else(|| judge.stripes(&all, (par, &l.body), &behind).map(Subarray::Stripes))?;
    Some(FirstRows { par: par.id, rows })
}

/// Looks at the accesses of one array.
struct Judge<'a> {
    source: &'a Program,
    affines: &'a Affines,
    array: ArrayId,
    /// The range of the loop at the top level.
    time: Range,
}

impl Judge<'_> {
    /// The loads of the array in a block.
    fn loads(&self, block: &[Stmt]) -> Vec<ValueId> {
        let mut loads: Vec<ValueId> = Vec::new();
        walk(block, &mut |stmt| match stmt {
            Stmt::Let(v) if matches!(self.source.op(*v), Op::Load(a, _) if *a == self.array) => {
                loads.push(*v)
            }
            _ => {}
        });
        loads
    }

    fn index(&self, load: ValueId) -> Option<Indices> {
        if let Op::Load(_, index) = self.source.op(load) { Some(*index) } else { None }
    }

    /// The rows that all of these loads read: one dimension of their indices is the iteration, and the same in all of them.
    fn rows(&self, all: &BTreeSet<ValueId>, body: &[Stmt], behind: &[Stmt]) -> Option<(usize, Bounds)> {
        let row = |v: ValueId, dimension: usize| {
            self.index(v)?.as_slice().get(dimension).map(|v| self.affines.form(*v))
        };
        let first = *all.first()?;
        let is_time = |d: &usize| row(first, *d).is_some_and(|form| form.coefficient(self.time.var) == 1);
        let dimension = (0..self.source.array(self.array).rank).find(is_time)?;
        let read = row(first, dimension)?;
        let offset = read.without(self.time.var);
        let known = offset.terms.iter().all(|(atom, _)| depends_on_arguments_alone(self.source, *atom));
        if !known || !all.iter().all(|v| row(*v, dimension) == Some(read)) {
            return None;
        }
        // What an iteration takes from the rows that it wrote was added by later iterations, or behind the loop.
        let mut is_later = true;
        walk(body, &mut |stmt| {
            if let Stmt::Store(s) | Stmt::Update(_, s) = stmt
                && s.array == self.array
            {
                let written = s.index.as_slice().get(dimension).map(|v| self.affines.form(*v));
                let by = written.and_then(|written| written.add_scaled(read, -1)?.as_constant());
                is_later &= by.is_some_and(|by| by > 0);
            }
        });
        let rows = Bounds {
            from: self.affines.form(self.time.from).add_scaled(&offset, 1)?,
            to: self.affines.form(self.time.to).add_scaled(&offset, 1)?,
        };
        let is_outside = |v: &ValueId| {
            let apart = |bound: &Affine| row(*v, dimension)?.add_scaled(bound, -1)?.as_constant();
            apart(&rows.to).is_some_and(|by| by >= 0) || apart(&rows.from).is_some_and(|by| by < 0)
        };
        (is_later && self.loads(behind).iter().all(is_outside)).then_some((dimension, rows))
    }

    /// The stripes of a flat array that these loads of a parallel loop read.
    fn stripes(
        &self,
        all: &BTreeSet<ValueId>,
        (par, body): (&Par, &[Stmt]),
        behind: &[Stmt],
    ) -> Option<Stripes> {
        let of = |ranges: &[Range], index: Indices| {
            stripes(self.source, self.affines, (&self.time, ranges), index)
        };
        let mut read: Option<Stripes> = None;
        for v in all {
            let here = of(&par.ranges, self.index(*v)?)?;
            read = Some(match read {
                Some(read) => read.joined(&here)?,
                None => here,
            });
        }
        let read = read?;
        let is_later = |ranges: &[Range], block: &[Stmt]| {
            let mut is_later = true;
            walk(block, &mut |stmt| {
                if let Stmt::Store(s) | Stmt::Update(_, s) = stmt
                    && s.array == self.array
                {
                    let written = of(ranges, s.index).filter(|written| written.stride == read.stride);
                    is_later &= written.is_some_and(|written| is_at_most(&read.high, &written.low));
                }
            });
            is_later
        };
        let later = body.iter().all(|stmt| match stmt {
            Stmt::Par(par) => is_later(&par.ranges, &par.body),
            other => is_later(&[], std::slice::from_ref(other)),
        });
        // Behind the last stripe.
        let expanded = |v: ValueId| Polynomial::expanded(self.source, self.affines, self.affines.form(v));
        let last = expanded(self.time.to)?.add_scaled(&Polynomial::constant(1), -1)?;
        let end = read.stride.mul(&last)?.add_scaled(&read.high, 1)?;
        let is_behind = |ranges: &[Range], block: &[Stmt]| {
            self.loads(block)
                .iter()
                .all(|v| self.least(ranges, *v).is_some_and(|least| is_at_most(&end, &least)))
        };
        let outside = behind.iter().all(|stmt| match stmt {
            Stmt::Par(par) => is_behind(&par.ranges, &par.body),
            other => is_behind(&[], std::slice::from_ref(other)),
        });
        (later && outside).then_some(read)
    }

    /// The least index of a load of an array of rank 1 in a parallel loop.
    fn least(&self, ranges: &[Range], load: ValueId) -> Option<Polynomial> {
        let &[index] = self.index(load)?.as_slice() else { return None };
        let expanded = |v: ValueId| Polynomial::expanded(self.source, self.affines, self.affines.form(v));
        let mut least = expanded(index)?;
        for range in ranges {
            let var = Atom::Value(range.var);
            match least.terms.remove(&vec![var.clone()]) {
                Some(c) if c > 0 => least = least.add_scaled(&expanded(range.from)?, c)?,
                None => {}
                Some(_) => return None,
            }
            if least.terms.keys().flatten().any(|atom| *atom == var) {
                return None;
            }
        }
        (least.divisor == 1).then_some(least)
    }
}

/// Does a statement take the array as a whole?
fn taken_as_whole(block: &[Stmt], array: ArrayId) -> bool {
    let mut whole = false;
    walk(block, &mut |stmt| {
        whole |= match stmt {
            Stmt::Copy { from, to, .. } => [from, to].contains(&&array),
            Stmt::Swap(a, b) => [a, b].contains(&&array),
            Stmt::Fill(a, ..) => *a == array,
            Stmt::Library(call) => call.arrays().any(|a| a == array),
            Stmt::Region(_) => true,
            _ => false,
        };
    });
    whole
}
