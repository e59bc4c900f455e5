//! The reference interpreter of nests: what the loops around iterations mean. Tests run them on it, without a compiler.
//!
//! Threads run one after the other, the last one first: what they share must not depend on which comes first.

use std::collections::BTreeMap;

use ebbtide_ir::evaluate::{Bits, combine, neutral};
use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{ArrayId, Combine, Range, Type, ValueId};

use super::{
    Buckets, Ends, First, For, Interiors, Iterations, Kind, Nest, Node, Over, Proved, Row, Together,
};
use crate::kernel::evaluate::{World, narrowed, remainders};
use crate::kernel::interpret::{Ended, Iteration, Memory};
use crate::kernel::interval::{Before, Interval};
use crate::kernel::machine::SMALL;
use crate::kernel::name::Name;
use crate::kernel::stmt::Body;

/// The values of names.
pub(crate) type Names = BTreeMap<Name, Vec<Bits>>;

/// What a nest is run with.
pub(crate) struct Outside<'a> {
    pub threads: i64,
    /// The names that are known before the loop.
    pub names: &'a Names,
    /// The first value and the end of each range, in the order of the nest.
    pub ranges: Vec<(i64, i64)>,
    /// The statements that compute a value before the innermost loop.
    pub early: &'a dyn Fn(ValueId) -> Body,
    /// The type of an array.
    pub ty: &'a dyn Fn(ArrayId) -> Type,
}

impl Outside<'_> {
    /// The names of a row: its outer variables, and what is computed before the innermost loop.
    pub fn names(&self, ranges: &[Range], interval: &Interval, memory: &mut Memory, outer: &[i64]) -> Names {
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps before the innermost loop") };
        let mut names = self.names.clone();
        let variables = ranges.iter().zip(outer);
        names.extend(variables.map(|(range, at)| (Name::value(range.var), vec![*at as Bits])));
        for before in &interval.before {
            let Before::Value(v) = before else { continue };
            let mut one = Iteration::new(memory, &none, []);
            one.names = names;
            let ended = one.run(&(self.early)(*v));
            names = one.names;
            if ended.is_err() {
                names.insert(Name::value(*v), vec![0]);
            }
        }
        names
    }

    /// The interval of a row and the bases of remainders in it; `None` where something is wild.
    pub fn interval(
        &self,
        interval: &Interval,
        memory: &Memory,
        names: &Names,
        columns: (i64, i64),
    ) -> Option<((i64, i64), BTreeMap<ValueId, i64>)> {
        let value = |v: ValueId| names[&Name::value(v)][0] as i64;
        let extent = |array: ArrayId, k: usize| memory.shapes[array.index()][k];
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges: &self.ranges };
        let wrapped = remainders(interval, &world, columns)?;
        let found = narrowed(interval, &World { wrapped: &|v| wrapped[&v], ..world }, columns)?;
        Some((found, wrapped))
    }
}

/// What became of a nest.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// How many steps of iterations ran in the interior form, and how many iterations in the careful form.
    pub inside: usize,
    pub careful: usize,
    /// How often rows were taken as one.
    pub as_one: usize,
    /// How often several rows were taken together.
    pub together: usize,
    /// How many vectors took the ends of rows.
    pub ends: usize,
    /// By reduction: what the leaves came to, if any iteration had a term.
    pub totals: Vec<Option<Bits>>,
}

/// Runs a nest on memory. The elements of reductions exist; who runs it combines the totals into them.
pub(crate) fn run(nest: &Nest, memory: &mut Memory, outside: &Outside) -> Result<Ran, Ended> {
    let mut machine = Machine { nest, outside, ran: Ran::default() };
    let extent = |(from, to): &(i64, i64)| to.saturating_sub(*from).max(0);
    let extents: Vec<i64> = outside.ranges.iter().map(extent).collect();
    let cut = Leaves::of(&extents);
    let mut partials = vec![vec![0; nest.reductions.len()]; cut.count() as usize];
    let mut seen = vec![false; nest.reductions.len()];
    if let Some(buckets) = &nest.buckets {
        machine.buckets(memory, buckets, (cut.rows, cut.row))?;
        return Ok(machine.ran);
    }
    for node in &nest.body {
        let Node::For(shares) = node else { continue };
        if shares.over == Over::Terms {
            machine.terms(memory, &shares.body, &cut, (&mut partials, &mut seen))?;
            continue;
        }
        let parts = if shares.kind == Kind::Seq { 1 } else { outside.threads };
        for part in (0..parts).rev() {
            let (row, jf) = (cut.row, outside.ranges[extents.len() - 1].0);
            let all = Share { rows: (0, cut.rows), columns: (jf, jf + row) };
            let share = |n: i64, part: i64| n / parts * part + (n % parts).min(part);
            match shares.over {
                Over::Leaves => {
                    for leaf in share(cut.count(), part)..share(cut.count(), part + 1) {
                        let (first, piece) = (leaf / cut.pieces * cut.rows_per_leaf, leaf % cut.pieces);
                        let from = jf + piece * cut.size;
                        let rows = (first, (first + cut.rows_per_leaf).min(cut.rows));
                        let columns = (from, from + cut.size.min(row - piece * cut.size));
                        let lanes = |how, ty| (vec![neutral(how, ty); LANES], false);
                        memory.reductions =
                            nest.reductions.iter().map(|(how, ty)| lanes(*how, *ty)).collect();
                        machine.share(memory, &shares.body, Share { rows, columns })?;
                        end_leaf(nest, memory, &mut partials[leaf as usize], &mut seen);
                    }
                }
                Over::Columns { aligned } => {
                    let column = |part| {
                        let aligned = aligned as i64;
                        jf + if part == parts { row } else { share(row, part) / aligned * aligned }
                    };
                    let columns = (column(part), column(part + 1));
                    machine.share(memory, &shares.body, Share { columns, ..all })?;
                }
                _ => {
                    let rows = (share(cut.rows, part), share(cut.rows, part + 1));
                    machine.share(memory, &shares.body, Share { rows, ..all })?;
                }
            }
        }
    }
    let total = |k: usize| {
        let (how, ty) = nest.reductions[k];
        let all = partials.iter().fold(neutral(how, ty), |sum, leaf| combine(how, ty, sum, leaf[k]));
        seen[k].then_some(all)
    };
    machine.ran.totals = (0..nest.reductions.len()).map(total).collect();
    Ok(machine.ran)
}

/// Combines the lanes of a leaf in a tree.
fn end_leaf(nest: &Nest, memory: &mut Memory, partials: &mut [Bits], seen: &mut [bool]) {
    for (k, ((lanes, any), (how, ty))) in memory.reductions.iter_mut().zip(&nest.reductions).enumerate() {
        let mut width = LANES / 2;
        while width > 0 {
            (0..width).for_each(|lane| lanes[lane] = combine(*how, *ty, lanes[lane], lanes[lane + width]));
            width /= 2;
        }
        partials[k] = lanes[0];
        seen[k] |= *any;
    }
    memory.reductions.clear();
}

/// The lanes of the vectors of these loops.
fn lanes(loops: &[For]) -> i64 {
    let lanes = |l: &For| if let Kind::Lanes(lanes) = l.kind { lanes } else { 1 };
    loops.iter().map(lanes).max().unwrap_or(1) as i64
}

/// What a thread takes of a domain: rows and columns.
#[derive(Clone, Copy)]
struct Share {
    rows: (i64, i64),
    columns: (i64, i64),
}

struct Machine<'a> {
    nest: &'a Nest,
    outside: &'a Outside<'a>,
    ran: Ran,
}

/// A row that is run.
struct Along<'a> {
    names: &'a Names,
    wrapped: &'a BTreeMap<ValueId, i64>,
    /// Where the lanes of leaves are counted from.
    from: i64,
    /// Is it all rows as one?
    as_one: bool,
}

impl Machine<'_> {
    /// Threads keep the terms of their iterations; then those of leaves are combined.
    fn terms(
        &mut self,
        memory: &mut Memory,
        body: &[Node],
        cut: &Leaves,
        (partials, seen): (&mut [Vec<Bits>], &mut [bool]),
    ) -> Result<(), Ended> {
        let (threads, all, row, lanes) = (self.outside.threads, cut.rows * cut.row, cut.row, LANES as i64);
        let first_column = self.outside.ranges[self.outside.ranges.len() - 1].0;
        let none = |nest: &Nest| -> Vec<_> {
            let neutral = |(how, ty): &(Combine, Type)| (vec![neutral(*how, *ty); LANES], false);
            nest.reductions.iter().map(neutral).collect()
        };
        let mut kept = vec![vec![0; all as usize]; self.nest.reductions.len()];
        let share = |part: i64| if part == threads { all } else { all * part / threads / lanes * lanes };
        for part in (0..threads).rev() {
            let (mut at, end) = (share(part), share(part + 1));
            while at < end {
                let (r, column) = (at / row, at % row);
                let length = (row - column).min(lanes - column % lanes).min(end - at);
                memory.reductions = none(self.nest);
                let columns = (first_column + column, first_column + column + length);
                self.share(memory, body, Share { rows: (r, r + 1), columns })?;
                for (k, (terms, any)) in memory.reductions.iter().enumerate() {
                    seen[k] |= *any;
                    (0..length)
                        .for_each(|i| kept[k][(at + i) as usize] = terms[((column + i) % lanes) as usize]);
                }
                at += length;
            }
        }
        let leaf_of =
            |at: i64| at / row / cut.rows_per_leaf * cut.pieces + at % row / cut.size.max(1) % cut.pieces;
        for (leaf, partials) in partials.iter_mut().enumerate() {
            memory.reductions = none(self.nest);
            for at in (0..all).filter(|at| leaf_of(*at) == leaf as i64) {
                for (k, (how, ty)) in self.nest.reductions.iter().enumerate() {
                    let sum = &mut memory.reductions[k].0[(at % row % lanes) as usize];
                    *sum = combine(*how, *ty, *sum, kept[k][at as usize]);
                }
            }
            end_leaf(self.nest, memory, partials, &mut vec![false; seen.len()]);
        }
        Ok(())
    }

    /// Threads note the terms of two batches of iterations; what is noted is combined in the order of threads.
    fn buckets(
        &mut self,
        memory: &mut Memory,
        buckets: &Buckets,
        (rows, row): (i64, i64),
    ) -> Result<(), Ended> {
        let (threads, all) = (self.outside.threads, rows * row);
        let first_column = self.outside.ranges[self.outside.ranges.len() - 1].0;
        for (from, to) in [(0, all / 2), (all / 2, all)] {
            let share = |part: i64| from + (to - from) * part / threads;
            let mut noted = Vec::new();
            for part in (0..threads).rev() {
                let (mut at, end) = (share(part), share(part + 1));
                while at < end {
                    let column = first_column + at % row;
                    let length = (row - at % row).min(end - at);
                    let rows = (at / row, at / row + 1);
                    let share = Share { rows, columns: (column, column + length) };
                    self.rows(memory, &Interiors::OfEach, &buckets.row, share)?;
                    at += length;
                }
                noted.push(std::mem::take(&mut memory.noted));
            }
            for (array, at, term) in noted.into_iter().rev().flatten() {
                let how = buckets.tables.iter().find(|(a, _)| *a == array).map_or(Combine::Add, |t| t.1);
                let element = &mut memory.arrays[array.index()][at];
                *element = combine(how, (self.outside.ty)(array), *element, term);
            }
        }
        Ok(())
    }

    fn share(&mut self, memory: &mut Memory, body: &[Node], share: Share) -> Result<(), Ended> {
        for node in body {
            let Node::For(For { over: Over::Rows(interiors), body, .. }) = node else { continue };
            for node in body {
                let Node::Row(row) = node else { continue };
                self.rows(memory, interiors, row, share)?;
            }
        }
        Ok(())
    }

    fn rows(
        &mut self,
        memory: &mut Memory,
        interiors: &Interiors,
        row: &Row,
        mut share: Share,
    ) -> Result<(), Ended> {
        let extents: Vec<i64> = self.outside.ranges.iter().map(|(from, to)| to - from).collect();
        let alike = *interiors != Interiors::OfEach && self.alike(memory, &row.interval, share.columns);
        let mut as_one = false;
        if let Interiors::AtCornersOrAsOne(arrays) = interiors {
            let begin = self.outside.ranges[1..].iter().all(|(from, _)| *from == 0);
            let lie = |a: &ArrayId| memory.shapes[a.index()][1..] == extents[1..];
            as_one = alike && share.rows.0 < share.rows.1 && begin && arrays.iter().all(lie);
        }
        if as_one {
            let length: i64 = extents[extents.len() - 1] * (share.rows.1 - share.rows.0);
            share = Share {
                rows: (share.rows.0, share.rows.0 + 1),
                columns: (share.columns.0, share.columns.0 + length),
            };
            self.ran.as_one += 1;
        }
        let outer = |r: i64| {
            let mut outer = vec![0; extents.len() - 1];
            let mut rest = r;
            for d in (0..outer.len()).rev() {
                outer[d] = self.outside.ranges[d].0 + rest % extents[d];
                rest /= extents[d];
            }
            outer
        };
        let mut first = share.rows.0;
        if let Some(together) = &row.together
            && share.columns.1 - share.columns.0 >= together.least as i64
            && self.alike(memory, &together.interval, share.columns)
        {
            while share.rows.1 - first >= together.rows as i64 {
                let rows: Vec<Vec<i64>> = (first..first + together.rows as i64).map(outer).collect();
                self.together(memory, together, &rows, share.columns)?;
                first += together.rows as i64;
            }
        }
        for r in first..share.rows.1 {
            self.row(memory, row, &outer(r), share.columns, (alike, as_one))?;
        }
        Ok(())
    }

    /// Several rows at a time, all in the interior.
    fn together(
        &mut self,
        memory: &mut Memory,
        together: &Together,
        rows: &[Vec<i64>],
        (from, to): (i64, i64),
    ) -> Result<(), Ended> {
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps where rows are taken together") };
        let mut one = Iteration::new(memory, &none, []);
        one.names.extend(self.outside.names.clone());
        for (side, outer) in rows.iter().enumerate() {
            let variables = self.nest.ranges.iter().zip(outer);
            let name = |range: &Range| Name { side: Some(side), ..Name::value(range.var) };
            one.names.extend(variables.map(|(range, at)| (name(range), vec![*at as Bits])));
        }
        one.run(&together.before)?;
        let names = one.names;
        let first = self.outside.ranges[self.outside.ranges.len() - 1].0;
        let along = Along { names: &names, wrapped: &BTreeMap::new(), from: first, as_one: false };
        let end = self.interior_loops(memory, &along, &together.inside, (from, to))?;
        debug_assert_eq!(end, (to, false), "rows together have no careful form");
        self.ran.together += 1;
        Ok(())
    }

    /// Runs the loops over the interval of a row; says how far they came, and whether the next iterations are taken one by one.
    fn interior_loops(
        &mut self,
        memory: &mut Memory,
        along: &Along,
        loops: &[For],
        (lo, hi): (i64, i64),
    ) -> Result<(i64, bool), Ended> {
        let mut j = lo;
        for l in loops {
            let lanes = if let Kind::Lanes(lanes) = l.kind { lanes } else { 1 };
            let left = hi - j;
            let (step, tail, end) = match l.over {
                Over::Interior { step, .. } => (step as i64, 0, hi),
                // Rows begin in the middle of a line.
                Over::Peeled { least, .. } => {
                    let first = if left >= least as i64 { lanes as i64 / 2 } else { 0 };
                    (first.max(1), first, j + first)
                }
                _ => (left.max(1), left, hi),
            };
            while end - j >= step {
                for node in &l.body {
                    let Node::Iterations(it) = node else { continue };
                    match self.iterations(memory, along, it, (j, lanes, tail as usize)) {
                        Err(Ended::FallBack) => return Ok((j, true)),
                        ended => ended?,
                    }
                }
                self.ran.inside += 1;
                j += step;
            }
        }
        Ok((j, false))
    }

    /// Are all iterations of all rows in the interior?
    fn alike(&self, memory: &mut Memory, interval: &Interval, columns: (i64, i64)) -> bool {
        let outer = &self.outside.ranges[..self.outside.ranges.len() - 1];
        (0..1 << outer.len()).all(|corner: usize| {
            let at =
                |(d, (from, to)): (usize, &(i64, i64))| if corner >> d & 1 == 1 { to - 1 } else { *from };
            let outer: Vec<i64> = outer.iter().enumerate().map(at).collect();
            let names = self.outside.names(&self.nest.ranges, interval, memory, &outer);
            self.outside
                .interval(interval, memory, &names, columns)
                .is_some_and(|(found, _)| found == columns)
        })
    }

    /// Do the tests hold that prove all accesses?
    fn holds(&self, proved: &Proved, memory: &Memory) -> bool {
        let value = |v: ValueId| self.outside.names[&Name::value(v)][0] as i64;
        let extent = |array: ArrayId, k: usize| memory.shapes[array.index()][k];
        let ranges = &self.outside.ranges;
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges };
        let narrow = |(from, to): &(i64, i64)| *from >= -SMALL && to - from <= SMALL - from.max(&0);
        ranges.iter().all(narrow) && proved.tests.iter().all(|test| world.holds(test))
    }

    fn row(
        &mut self,
        memory: &mut Memory,
        row: &Row,
        outer: &[i64],
        (from, to): (i64, i64),
        (alike, as_one): (bool, bool),
    ) -> Result<(), Ended> {
        let proved = row.proved.as_ref().filter(|proved| self.holds(proved, memory));
        let mut interval = row.interval.clone();
        if let Some(proved) = proved {
            interval.narrowings.clone_from(&proved.narrowings);
        }
        let mut names = self.outside.names(&self.nest.ranges, &interval, memory, outer);
        let found = self.outside.interval(&interval, memory, &names, (from, to));
        let ((mut lo, mut hi), wrapped) = found.unwrap_or(((to, to), BTreeMap::new()));
        if alike {
            (lo, hi) = (from, to);
        }
        if to - from < row.least as i64 && !as_one {
            (lo, hi) = (to, to);
        }
        let first = self.outside.ranges[self.outside.ranges.len() - 1].0;
        if !self.nest.reductions.is_empty() {
            // Vectors begin where the lanes of a leaf begin.
            let lanes = LANES as i64;
            lo = (first + (lo - first + lanes - 1) / lanes * lanes).min(to);
            hi = hi.max(lo);
        }
        let ends = proved.and_then(|proved| proved.ends.as_ref());
        let ends = ends.filter(|ends| !alike && to - from >= ends.least as i64);
        if let Some(ends) = ends {
            interval.before.extend(ends.before.iter().cloned());
            names = self.outside.names(&self.nest.ranges, &interval, memory, outer);
        }
        let along = Along { names: &names, wrapped: &wrapped, from: first, as_one };
        let careful = Iterations { first: First::At(0), body: row.careful.clone() };
        let (mut j, mut stop) = (from, lo);
        let inside: Vec<For> =
            row.inside.iter().filter(|l| ends.is_none() || l.over != Over::Tail).cloned().collect();
        loop {
            self.outside_of_interval(memory, &along, (&careful, ends), (&mut j, stop, to))?;
            if j == to {
                return Ok(());
            }
            let (at, left) = self.interior_loops(memory, &along, &inside, (j, hi))?;
            j = at;
            stop = if left { j + lanes(&inside) } else { to };
        }
    }

    /// Runs iterations up to one, or somewhat further in vectors, but not beyond the row.
    fn outside_of_interval(
        &mut self,
        memory: &mut Memory,
        along: &Along,
        (careful, ends): (&Iterations, Option<&Ends>),
        (j, stop, to): (&mut i64, i64, i64),
    ) -> Result<(), Ended> {
        while *j < stop {
            match ends {
                Some(ends) => {
                    let tail = (to - *j).min(ends.lanes as i64);
                    let it = Iterations { first: First::At(0), body: ends.body.clone() };
                    self.iterations(memory, along, &it, (*j, ends.lanes, tail as usize))?;
                    self.ran.ends += 1;
                    *j += tail;
                }
                None => {
                    self.iterations(memory, along, careful, (*j, 1, 0))?;
                    self.ran.careful += 1;
                    *j += 1;
                }
            }
        }
        Ok(())
    }

    /// Runs iterations from `j` on, in so many lanes, of which some alone are iterations in a tail.
    fn iterations(
        &self,
        memory: &mut Memory,
        along: &Along,
        it: &Iterations,
        (j, lanes, tail): (i64, usize, usize),
    ) -> Result<(), Ended> {
        let wrapped = |v: ValueId| along.wrapped[&v];
        let innermost = Name::value(self.nest.ranges[self.nest.ranges.len() - 1].var);
        let mut all = Iteration::new(memory, &wrapped, []);
        all.names = along.names.clone();
        (all.lanes, all.tail) = (lanes, tail);
        all.as_one = along.as_one;
        all.lane = ((j - along.from) % LANES as i64) as usize;
        match it.first {
            First::At(first) => drop(all.names.insert(innermost, vec![(j + first as i64) as Bits])),
            First::Sides(sides) => {
                let name = |side: usize| Name { side: Some(side), ..innermost };
                let at = |side: usize| vec![(j + (side * lanes) as i64) as Bits];
                all.names.extend((0..sides).map(|side| (name(side), at(side))));
            }
        }
        all.run(&it.body)
    }
}
