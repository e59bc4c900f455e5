//! Iterations on a grid: their names, the form that is right for each, and what becomes of their terms.

use std::collections::BTreeMap;

use ebbtide_ir::evaluate::{Bits, neutral};
use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{ArrayId, ValueId};

use super::{Machine, Scope};
use crate::kernel::bounds_test::Test;
use crate::kernel::evaluate::{World, evaluate};
use crate::kernel::grid::{Node, Often, Safe, When};
use crate::kernel::interpret::{Ended, Iteration};
use crate::kernel::interval::{Interval, Rows};
use crate::kernel::machine::SMALL;
use crate::kernel::name::Name;
use crate::kernel::nest::interpret::Names;
use crate::kernel::stmt::Body;

/// An iteration that is run, or several side by side.
struct One {
    names: Names,
    wrapped: BTreeMap<ValueId, i64>,
    /// Is it in the interior of its row?
    inside: bool,
    /// The lane of a leaf to which it adds.
    lane: usize,
    place: i64,
    leaf: i64,
}

/// The iterations that are run as one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Together {
    One,
    /// Those of so many rows in one column.
    Rows(usize),
    /// Those of so many columns of one row.
    Columns(usize),
}

impl<'a> Machine<'a> {
    pub(super) fn innermost(&self) -> Name {
        Name::value(self.grid.ranges[self.grid.ranges.len() - 1].var)
    }

    /// The values of the outer variables in a row.
    fn outer(&self, row: i64) -> Vec<i64> {
        let ranges = &self.outside.ranges;
        let (mut outer, mut rest) = (vec![0; ranges.len() - 1], row);
        for d in (0..outer.len()).rev() {
            let extent = ranges[d].1 - ranges[d].0;
            outer[d] = ranges[d].0 + rest % extent;
            rest /= extent;
        }
        outer
    }

    /// The names of a row.
    pub(super) fn names_of(&mut self, row: i64) -> Names {
        let none = Interval { before: Vec::new(), narrowings: Vec::new(), rows: Rows::Each };
        let interval = if let Safe::Interior(interval) = &self.grid.safe { interval } else { &none };
        let outer = self.outer(row);
        self.outside.names(&self.grid.ranges, interval, self.memory, &outer)
    }

    pub(super) fn proved(&self) -> bool {
        let Safe::Proved(tests) = &self.grid.safe else { return false };
        let memory = &*self.memory;
        let value = |v: ValueId| self.outside.names[&Name::value(v)][0] as i64;
        let extent = |array: ArrayId, k: usize| memory.shapes[array.index()][k];
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges: &self.outside.ranges };
        tests.iter().all(|test| match test {
            Test::NotNegative(e) => evaluate(e, &world).is_some_and(|e| e >= 0),
            Test::AtMost(e, array, k) => evaluate(e, &world).is_some_and(|e| e <= extent(*array, *k)),
            Test::Narrow(e) => evaluate(e, &world).is_some_and(|e| e <= SMALL),
            Test::Tame(a, b) => [a, b].into_iter().all(|e| evaluate(&e.clone().tamed(), &world).is_some()),
        })
    }

    /// Runs an iteration, or those that go together with it, with this place in its tile, window or batch.
    pub(super) fn iteration(
        &mut self,
        nodes: &'a [Node],
        (row, j, together): (i64, i64, Together),
        place: i64,
        scope: Scope,
    ) -> Result<(), Ended> {
        let (names, innermost) = (self.names_of(row), self.innermost());
        let of_row = (self.first_column(), self.first_column() + self.cut.row);
        let found = match &self.grid.safe {
            Safe::Interior(interval) => self.outside.interval(interval, self.memory, &names, of_row),
            _ => None,
        };
        let (interval, wrapped) = found.unwrap_or(((j, j), BTreeMap::new()));
        let mut all = One {
            names,
            wrapped,
            inside: (interval.0..interval.1).contains(&j),
            lane: ((j - of_row.0) % LANES as i64) as usize,
            place,
            leaf: scope.leaf,
        };
        all.names.insert(innermost, vec![j as Bits]);
        let (rows, columns) = match together {
            Together::One => (0, 0),
            Together::Rows(rows) => (rows, 0),
            Together::Columns(columns) => (0, columns),
        };
        for side in 0..columns {
            all.names.insert(Name { side: Some(side), ..innermost }, vec![(j + side as i64) as Bits]);
        }
        for side in 0..rows {
            let index = self.outer(row + side as i64).into_iter().chain([j]);
            let ranges = self.grid.ranges.iter().zip(index);
            let name = |v: ValueId| Name { side: Some(side), ..Name::value(v) };
            all.names.extend(ranges.map(|(range, at)| (name(range.var), vec![at as Bits])));
        }
        self.of_iteration(nodes, &mut all)?;
        let noted = std::mem::take(&mut self.memory.noted);
        if let Some(counts) = self.counts.get(&place) {
            assert!(noted.len() as i64 <= counts.iter().sum(), "more terms than were counted");
        }
        self.notes.insert(place, noted);
        Ok(())
    }

    fn of_iteration(&mut self, nodes: &'a [Node], one: &mut One) -> Result<(), Ended> {
        for node in nodes {
            match node {
                Node::If { when, then, otherwise } => {
                    let holds = match when {
                        When::Interior | When::WarpInterior => one.inside,
                        When::WarpFar { conditions, are } => {
                            conditions.iter().try_for_each(|body| self.run_body(body, one))?;
                            are.iter().all(|(name, holds)| (one.names[name][0] != 0) == *holds)
                        }
                        _ => self.proved(),
                    };
                    self.of_iteration(if holds { then } else { otherwise }, one)?;
                }
                Node::Keep(nodes) => {
                    let neutrals: Vec<_> =
                        self.grid.reductions.iter().map(|(how, ty)| neutral(*how, *ty)).collect();
                    self.memory.reductions = neutrals.iter().map(|n| (vec![*n; LANES], false)).collect();
                    self.of_iteration(nodes, one)?;
                    for (k, (lanes, any)) in
                        std::mem::take(&mut self.memory.reductions).into_iter().enumerate()
                    {
                        self.kept[k].insert(one.place, lanes[one.lane]);
                        self.seen[k] |= any;
                    }
                }
                Node::Iterations(iterations) => {
                    let is_safe = iterations.often == Often::Often && self.grid.safe != Safe::Nowhere;
                    if is_safe {
                        self.ran.unchecked += 1
                    } else {
                        self.ran.careful += 1
                    }
                    self.run_body(&iterations.body, one)?;
                }
                _ => unreachable!("iterations have nothing else"),
            }
        }
        Ok(())
    }

    fn run_body(&mut self, body: &'a Body, one: &mut One) -> Result<(), Ended> {
        // The sums of a leaf, where terms are added at once.
        let at_once = self.memory.reductions.is_empty() && !self.grid.reductions.is_empty();
        if at_once {
            let lanes = |k: usize| self.lanes.get(&(one.leaf, k)).cloned().unwrap_or_default();
            self.memory.reductions = (0..self.grid.reductions.len()).map(|k| (lanes(k), false)).collect();
        }
        let wrapped = |v: ValueId| one.wrapped[&v];
        let mut all = Iteration::new(self.memory, &wrapped, []);
        all.names = std::mem::take(&mut one.names);
        all.lane = one.lane;
        let ended = all.run(body);
        one.names = std::mem::take(&mut all.names);
        if at_once {
            for (k, (lanes, any)) in std::mem::take(&mut self.memory.reductions).into_iter().enumerate() {
                self.lanes.insert((one.leaf, k), lanes);
                self.seen[k] |= any;
            }
        }
        ended
    }
}
