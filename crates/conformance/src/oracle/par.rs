//! Parallel loops and the order of reductions (law 8).

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::evaluate::{Bits, combine, neutral};
use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{
    ArrayId, Combine, Literal, Loop, Op, Ordering, Par, RUN, Sharing, Stmt, Store, Type, ValueId, walk,
};

use super::Stop;
use super::dual::Dual;
use super::machine::{Machine, Taped};
use super::tape::{Node, Tape};

/// The lanes of one update statement in the parallel loop that runs now.
pub struct Reduction {
    how: Combine,
    ty: Type,
    lanes: [Taped; LANES],
    total: Taped,
    /// Of minima and maxima of floats: what attains them so far.
    attained: Ties,
    element: Option<(ArrayId, usize)>,
}

/// The terms that a parallel loop has added to an element: how many its last run has, and the sum of the runs before that.
#[derive(Clone, Copy, Default)]
pub struct Run {
    terms: usize,
    before: Option<Taped>,
}

/// A least or greatest float, and what attains it. They share its derivative equally (law 13).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ties {
    best: Option<f64>,
    attaining: Attaining,
}

/// Equal candidates. Their sum stands for them: a node for each number of them then takes one edge, where a list of them would
/// make the tape grow with the square of their number.
#[derive(Clone, Copy, Debug)]
struct Attaining {
    sum: Node,
    count: u64,
}

impl Default for Attaining {
    fn default() -> Attaining {
        Attaining { sum: Node::CONSTANT, count: 0 }
    }
}

impl Attaining {
    fn one(node: Node) -> Attaining {
        Attaining { sum: node, count: 1 }
    }
}

impl Ties {
    /// One more candidate, or several equal ones. Of a number and NaN the number counts.
    fn add(&mut self, tape: &mut Tape, how: Combine, value: f64, candidates: Attaining) {
        if value.is_nan() {
            return;
        }
        let beats =
            self.best.is_none_or(|best| if how == Combine::Min { value < best } else { value > best });
        if beats {
            *self = Ties { best: Some(value), attaining: candidates };
        } else if self.best == Some(value) {
            self.attaining.sum = tape.sum(self.attaining.sum, candidates.sum);
            self.attaining.count += candidates.count;
        }
    }

    fn node(&self, tape: &mut Tape) -> Node {
        let Attaining { sum, count } = self.attaining;
        if count > 1 { tape.push(&[(sum, Dual::constant(1.0 / count as f64))]) } else { sum }
    }
}

impl<'p> Machine<'p> {
    pub(super) fn par(&mut self, par: &'p Par) -> Result<(), Stop> {
        let from: Vec<i64> = par.ranges.iter().map(|r| self.index(r.from)).collect();
        let to: Vec<i64> = par.ranges.iter().map(|r| self.index(r.to)).collect();
        let extents: Vec<i64> = from.iter().zip(&to).map(|(f, t)| t.saturating_sub(*f).max(0)).collect();
        if extents.contains(&0) {
            return Ok(());
        }
        self.begin_reductions(par);
        self.paired = self.used_in_two_ways(par);
        let leaves = Leaves::of(&extents);
        let row_length = extents.last().copied().unwrap_or(1);
        let mut leaf = 0;
        self.in_parallel = true;
        for iteration in 0..extents.iter().product::<i64>() {
            let mut rest = iteration;
            for (d, range) in par.ranges.iter().enumerate().rev() {
                let i = from[d] + rest % extents[d];
                rest /= extents[d];
                self.values[range.var.index()] = Taped::constant(i as Bits);
            }
            let (row, place) = (iteration / row_length, iteration % row_length);
            if leaves.leaf(row, place) != leaf {
                leaf = leaves.leaf(row, place);
                self.end_leaf();
            }
            self.lane = place as usize % LANES;
            self.block(&par.body)?;
        }
        self.end_reductions(par);
        self.end_runs();
        self.in_parallel = false;
        self.ties.clear();
        self.paired.clear();
        Ok(())
    }

    /// The arrays whose minima or maxima this loop takes, no two iterations at one element, and which it uses in another
    /// way too (law 13).
    fn used_in_two_ways(&self, par: &Par) -> BTreeSet<ArrayId> {
        let Some(facts) = self.facts.pars.get(&par.id) else { return BTreeSet::new() };
        let mut ways: BTreeMap<ArrayId, BTreeSet<String>> = BTreeMap::new();
        let (mut extremes, mut shared) = (BTreeSet::new(), BTreeSet::new());
        walk(&par.body, &mut |stmt| {
            let (array, way) = match stmt {
                Stmt::Update(how, s) => {
                    if *how != Combine::Add {
                        extremes.insert(s.array);
                    }
                    if facts.of(s) != Sharing::Own {
                        shared.insert(s.array);
                    }
                    (s.array, format!("{how:?}"))
                }
                Stmt::Store(s) => (s.array, "store".to_string()),
                Stmt::Let(v) => match self.program.op(*v) {
                    Op::Load(array, _) => (*array, "load".to_string()),
                    _ => return,
                },
                _ => return,
            };
            ways.entry(array).or_default().insert(way);
        });
        extremes
            .retain(|array| !shared.contains(array) && ways.get(array).is_some_and(|ways| ways.len() > 1));
        extremes
    }

    fn begin_reductions(&mut self, par: &'p Par) {
        let Some(facts) = self.facts.pars.get(&par.id) else { return };
        walk(&par.body, &mut |stmt| {
            if let Stmt::Update(Combine::Add, s) = stmt
                && facts.of(s) == Sharing::Scatter
                && self.program.array(s.array).ty.is_float()
                && par.ordering == Ordering::Ordered
            {
                self.counted.insert(s.id);
            }
            if let Stmt::Update(how, s) = stmt
                && facts.of(s) == Sharing::Reduce
            {
                let ty = self.program.array(s.array).ty;
                let start = Taped::constant(neutral(*how, ty));
                let lanes = [start; LANES];
                let reduction = Reduction {
                    how: *how,
                    ty,
                    lanes,
                    total: start,
                    attained: Ties::default(),
                    element: None,
                };
                self.reductions.insert(s.id, reduction);
            }
        });
    }

    fn end_leaf(&mut self) {
        let mut reductions = std::mem::take(&mut self.reductions);
        for r in reductions.values_mut() {
            let leaf = self.tree(r.how, r.ty, r.lanes);
            r.total = self.sum_or_bits(r.how, r.ty, r.total, leaf);
            r.lanes = [Taped::constant(neutral(r.how, r.ty)); LANES];
        }
        self.reductions = reductions;
    }

    /// Lanes combined: 8, 4, 2, 1.
    fn tree(&mut self, how: Combine, ty: Type, mut lanes: [Taped; LANES]) -> Taped {
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] = self.sum_or_bits(how, ty, lanes[lane], lanes[lane + width]);
            }
            width /= 2;
        }
        lanes[0]
    }

    /// Law 8 for a loop inside an iteration: each local gets the sum of what iterations leave in it.
    pub(super) fn summed(&mut self, l: &'p Loop, var: ValueId, [from, to]: [i64; 2]) -> Result<(), Stop> {
        let size = Leaves::of(&[to - from]).size;
        let program = self.program;
        let types: Vec<Type> = l.sums.iter().map(|local| program.locals[local.index()].ty).collect();
        let start = |ty: &Type| Taped::constant(neutral(Combine::Add, *ty));
        let before: Vec<Taped> = l.sums.iter().map(|local| self.locals[local.index()]).collect();
        let mut totals: Vec<Taped> = types.iter().map(start).collect();
        for first in (from..to).step_by(size as usize) {
            let mut lanes: Vec<[Taped; LANES]> = types.iter().map(|ty| [start(ty); LANES]).collect();
            for j in first..to.min(first + size) {
                self.values[var.index()] = Taped::constant(j as Bits);
                for (local, ty) in l.sums.iter().zip(&types) {
                    self.locals[local.index()] = start(ty);
                }
                self.block(&l.body)?;
                let lane = (j - first) as usize % LANES;
                for ((local, ty), lanes) in l.sums.iter().zip(&types).zip(&mut lanes) {
                    let term = self.locals[local.index()];
                    lanes[lane] = self.sum_or_bits(Combine::Add, *ty, lanes[lane], term);
                }
            }
            for ((total, ty), lanes) in totals.iter_mut().zip(&types).zip(lanes) {
                let leaf = self.tree(Combine::Add, *ty, lanes);
                *total = self.sum_or_bits(Combine::Add, *ty, *total, leaf);
            }
        }
        for (k, local) in l.sums.iter().enumerate() {
            self.locals[local.index()] = self.sum_or_bits(Combine::Add, types[k], before[k], totals[k]);
        }
        Ok(())
    }

    fn end_reductions(&mut self, par: &'p Par) {
        self.end_leaf();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Update(_, s) = stmt
                && let Some(r) = self.reductions.remove(&s.id)
                && let Some((array, at)) = r.element
            {
                let attained = (r.how != Combine::Add).then_some(&r.attained);
                self.combine_into(r.how, array, at, r.total, attained);
            }
        });
    }

    pub(super) fn update(&mut self, how: Combine, s: &'p Store) -> Result<(), Stop> {
        let at = self.element(s.array, s.index)?;
        let (value, ty) = (self.values[s.value.index()], self.program.array(s.array).ty);
        let lane = self.lane;
        let Some(mut r) = self.reductions.remove(&s.id) else {
            if self.counted.contains(&s.id) {
                self.count_term(s.array, at);
            }
            self.combine_into(how, s.array, at, value, None);
            return Ok(());
        };
        r.element = Some((s.array, at));
        if how != Combine::Add && ty.is_float() {
            let number = Literal::from_bits(ty, value.bits).to_f64();
            self.note_tie(r.attained.best, number, value.node);
            r.attained.add(&mut self.tape, how, number, Attaining::one(value.node));
        }
        r.lanes[lane] = self.sum_or_bits(how, ty, r.lanes[lane], value);
        self.reductions.insert(s.id, r);
        Ok(())
    }

    /// One more term for an element. Behind a whole run the next one begins, as a chain of its own.
    fn count_term(&mut self, array: ArrayId, at: usize) {
        let ty = self.program.array(array).ty;
        let mut run = self.runs.remove(&(array, at)).unwrap_or_default();
        if run.terms == RUN {
            let sum = self.arrays[array.index()].elements[at];
            let all = run.before.map(|before| self.sum_or_bits(Combine::Add, ty, before, sum));
            run = Run { terms: 0, before: Some(all.unwrap_or(sum)) };
            self.arrays[array.index()].elements[at] = Taped::constant(neutral(Combine::Add, ty));
        }
        run.terms += 1;
        self.runs.insert((array, at), run);
    }

    /// Adds the last run of each element to those before it.
    fn end_runs(&mut self) {
        self.counted.clear();
        for ((array, at), run) in std::mem::take(&mut self.runs) {
            if let Some(before) = run.before {
                let (ty, last) = (self.program.array(array).ty, self.arrays[array.index()].elements[at]);
                let sum = self.sum_or_bits(Combine::Add, ty, before, last);
                self.arrays[array.index()].elements[at] = sum;
            }
        }
    }

    /// Combines an element with a value. Minima and maxima within one parallel loop remember who attains them.
    fn combine_into(
        &mut self,
        how: Combine,
        array: ArrayId,
        at: usize,
        value: Taped,
        attained: Option<&Ties>,
    ) {
        let ty = self.program.array(array).ty;
        let old = self.arrays[array.index()].elements[at];
        let mut new = self.sum_or_bits(how, ty, old, value);
        if how != Combine::Add && ty.is_float() {
            let [before, number] = [old, value].map(|t| Literal::from_bits(ty, t.bits).to_f64());
            let candidates = attained.map_or(Attaining::one(value.node), |ties| ties.attaining);
            self.note_tie(Some(before), number, candidates.sum);
            if self.paired.contains(&array) {
                let second = if how == Combine::Min { number < before } else { number > before };
                new.node = if before.is_nan() || second { value.node } else { old.node };
                self.arrays[array.index()].elements[at] = new;
                return;
            }
            let mut ties = self.ties.remove(&(array, at)).unwrap_or_default();
            if ties.best != Some(before) {
                ties = Ties::default();
                ties.add(&mut self.tape, how, before, Attaining::one(old.node));
            }
            ties.add(&mut self.tape, how, number, candidates);
            new.node = ties.node(&mut self.tape);
            if self.in_parallel {
                self.ties.insert((array, at), ties);
            }
        }
        self.arrays[array.index()].elements[at] = new;
    }

    fn note_tie(&mut self, best: Option<f64>, value: f64, node: Node) {
        if let Some(best) = best
            && !node.is_constant()
        {
            let distance = (best - value).abs() / best.abs().max(value.abs()).max(1e-3);
            self.nearest_kink = self.nearest_kink.min(distance);
        }
    }

    /// An element combined with a value; of minima and maxima the bits alone.
    pub(super) fn sum_or_bits(&mut self, how: Combine, ty: Type, element: Taped, value: Taped) -> Taped {
        let bits = combine(how, ty, element.bits, value.bits);
        let node = match how {
            Combine::Add if ty.is_float() => self.tape.sum(element.node, value.node),
            _ => Node::CONSTANT,
        };
        Taped { bits, node }
    }
}
