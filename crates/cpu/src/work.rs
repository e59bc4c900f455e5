//! How much the loops of a segment compute. Input: a segment, the shapes and scalars of a launch; output: its work, whether
//! several threads should share it, and how many partial sums its reductions keep at most.
//!
//! The unit of work is an addition. What cannot be computed from the arguments of a launch is estimated.

use std::collections::BTreeMap;

use ebbtide_codegen::{RoomForRuns, TermRuns, WORTH_SHARING, room_for_notes, room_for_runs, room_for_terms};
use ebbtide_ir::{
    ArrayId, Block, Facts, LibraryCall, LibraryOp, Literal, Loop, LoopKind, Op, Par, ParId, Program, Sharing,
    Stmt, ValueId, leaf, walk,
};
use ebbtide_runtime::{View, follows_from_arguments, from_arguments};

/// The iterations of a loop whose bounds are data.
const UNKNOWN: f64 = 32.0;
/// What an elementary function costs.
const FUNCTION: f64 = 60.0;
/// An array of so many elements is taken to be worth several threads where the domain of a loop is data.
const LARGE: f64 = 4096.0;
/// So many elements are worth several threads where they are filled or copied.
const MANY: f64 = 65536.0;

/// What an addition takes, in nanoseconds: in vectors half of it, behind a load at some place of memory much more.
const ADDITION: f64 = 0.1;
/// What it takes threads to share a loop, in nanoseconds, and for each of them: they meet, and what one of them wrote and another
/// one reads goes from core to core.
const MEETING: [f64; 2] = [1000.0, 150.0];

/// What a launch knows.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub program: &'a Program,
    pub views: &'a [View],
    pub scalars: &'a [Literal],
}

/// A statement whose work threads can share.
struct Share {
    /// How often it runs.
    times: f64,
    work: f64,
    /// Is it worth a hand-off? Otherwise one thread does it alone.
    worth: bool,
}

impl Share {
    /// How long so many threads take, in nanoseconds. They meet after it.
    fn time(&self, threads: usize) -> f64 {
        let meeting = if threads == 1 { 0.0 } else { MEETING[0] + MEETING[1] * threads as f64 };
        let sharing = if self.worth { threads as f64 } else { 1.0 };
        if self.times == 0.0 { 0.0 } else { self.times * (ADDITION * self.work / sharing + meeting) }
    }
}

impl Given<'_> {
    fn value(&self, v: ValueId) -> Option<f64> {
        from_arguments(self.program, v, self.views, self.scalars).map(|bits| bits as i64 as f64)
    }

    fn elements(&self, array: ArrayId) -> f64 {
        let shape = match &self.program.array(array).role {
            ebbtide_ir::Role::Temp(shape) => {
                return shape.iter().map(|v| self.value(*v).unwrap_or(UNKNOWN)).product();
            }
            _ => &self.views[array.index()].shape,
        };
        shape[..self.program.array(array).rank].iter().map(|n| *n as f64).product()
    }

    /// What a segment computes; infinite where the arguments of the launch do not tell.
    pub fn work(&self, segment: &Block) -> f64 {
        let work = |stmt: &Stmt| match stmt {
            Stmt::Par(par) => {
                self.iterations(par).map_or(f64::INFINITY, |times| times * self.cost(par, &par.body))
            }
            Stmt::Loop(Loop { kind: LoopKind::For { from, to, .. }, body, .. }) => {
                let times = self.value(*to).zip(self.value(*from)).map(|(to, from)| (to - from).max(0.0));
                match times {
                    // Nothing, though its body may be infinite.
                    Some(0.0) => 0.0,
                    Some(times) => times * self.work(body),
                    None => f64::INFINITY,
                }
            }
            Stmt::Loop(_) => f64::INFINITY,
            Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Copy { to: a, .. } => self.elements(*a),
            Stmt::Push(push) => self.elements(push.array),
            Stmt::Library(call) => self.multiplications(call).unwrap_or(f64::INFINITY),
            _ => 1.0 + stmt.blocks().map(|block| self.work(block)).sum::<f64>(),
        };
        segment.iter().map(work).sum()
    }

    /// The multiplications of a product of matrices.
    fn multiplications(&self, call: &LibraryCall) -> Option<f64> {
        match (call.op, call.arrays().collect::<Vec<_>>().as_slice()) {
            // The product of all three is the square of the number of multiplications.
            (LibraryOp::Matmul { .. }, &[a, b, c]) => {
                Some((self.elements(a) * self.elements(b) * self.elements(c)).sqrt())
            }
            _ => None,
        }
    }

    /// How many of `most` threads should run a segment: fewer where they would meet more often than that is worth.
    pub fn threads(&self, facts: &Facts, segment: &Block, most: usize) -> usize {
        let mut shares = Vec::new();
        self.shares(facts, segment, 1.0, &mut shares);
        if shares.iter().all(|share| !share.worth) {
            return 1;
        }
        let time = |threads: usize| shares.iter().map(|share| share.time(threads)).sum::<f64>();
        let tries = || (0..).map(|log| 1 << log).take_while(|threads| *threads < most).chain([most]);
        let least = tries().map(time).fold(f64::INFINITY, f64::min);
        // What is not known is much: then no number is better than all. A few threads more for hardly anything are not worth it.
        tries().find(|threads| least.is_finite() && time(*threads) <= 1.1 * least).unwrap_or(most)
    }

    /// What the statements of a block that runs so often compute, and whether threads share it.
    fn shares(&self, facts: &Facts, block: &Block, times: f64, shares: &mut Vec<Share>) {
        for stmt in block {
            let (work, worth) = match stmt {
                Stmt::Par(par) => {
                    let worth = self.loop_is_worth_sharing(facts, par);
                    let unknown = if worth { f64::INFINITY } else { 0.0 };
                    (self.iterations(par).map_or(unknown, |n| n * self.cost(par, &par.body)), worth)
                }
                Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Copy { to: a, .. } => {
                    (self.elements(*a), self.elements(*a) >= MANY)
                }
                Stmt::Push(push) => (self.elements(push.array), self.elements(push.array) >= MANY),
                Stmt::Library(call) => match self.multiplications(call) {
                    Some(work) => (work, work >= WORTH_SHARING),
                    None => continue,
                },
                Stmt::Loop(l) => {
                    let iterations = match &l.kind {
                        LoopKind::For { from, to, .. } => self.value(*to).zip(self.value(*from)),
                        _ => None,
                    };
                    let iterations = iterations.map_or(UNKNOWN, |(to, from)| (to - from).max(0.0));
                    self.shares(facts, &l.body, times * iterations, shares);
                    continue;
                }
                _ => {
                    stmt.blocks().for_each(|block| self.shares(facts, block, times, shares));
                    continue;
                }
            };
            shares.push(Share { times, work, worth });
        }
    }

    fn loop_is_worth_sharing(&self, facts: &Facts, par: &Par) -> bool {
        let sharing = facts.pars.get(&par.id).map(|facts| &facts.sharing);
        let has = |kind| sharing.is_some_and(|sharing| sharing.values().any(|s| *s == kind));
        if has(Sharing::Scatter) && has(Sharing::Reduce) {
            // Ordered sums at shared elements are taken by one thread where sums are taken leaf by leaf as well.
            return false;
        }
        match self.iterations(par) {
            Some(iterations) => iterations * self.cost(par, &par.body) >= WORTH_SHARING,
            None => {
                let mut large = false;
                walk(&par.body, &mut |stmt| match stmt {
                    Stmt::Store(s) | Stmt::Update(_, s) => large |= self.elements(s.array) >= LARGE,
                    Stmt::Let(v) => {
                        if let Op::Load(a, _) = self.program.op(*v) {
                            large |= self.elements(*a) >= LARGE;
                        }
                    }
                    _ => {}
                });
                large
            }
        }
    }

    /// The iterations of a parallel loop, at most; none where its ends are data.
    fn iterations(&self, par: &Par) -> Option<f64> {
        let extent =
            |r: &ebbtide_ir::Range| Some((self.value(r.to)? - self.value(r.from).unwrap_or(0.0)).max(0.0));
        par.ranges.iter().map(extent).product()
    }

    /// What an iteration of `par` computes in a block of its body. The depth of recursion is that of nesting in the source.
    fn cost(&self, par: &Par, body: &Block) -> f64 {
        let mut cost = 1.0;
        for stmt in body {
            cost += match stmt {
                Stmt::Let(v) => match self.program.op(*v) {
                    Op::Math(..) | Op::Rand(..) => FUNCTION,
                    Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) => 0.0,
                    _ => 1.0,
                },
                _ => 1.0,
            };
            let times = match stmt {
                Stmt::Loop(Loop { kind: LoopKind::For { from, to, .. }, .. }) => {
                    let from = self.value(*from).unwrap_or(0.0);
                    self.end(par, *to).map_or(UNKNOWN, |to| (to - from).max(0.0))
                }
                Stmt::Loop(_) => UNKNOWN,
                _ => 1.0,
            };
            cost += times * stmt.blocks().map(|block| self.cost(par, block)).sum::<f64>();
        }
        cost
    }

    /// The end of a loop inside an iteration; half the domain on average, where it is a variable of the parallel loop.
    fn end(&self, par: &Par, to: ValueId) -> Option<f64> {
        match par.ranges.iter().find(|r| r.var == to) {
            Some(range) => Some((self.value(range.from).unwrap_or(0.0) + self.value(range.to)?) / 2.0),
            None => self.value(to),
        }
    }

    /// The bytes in which so many threads together note terms while they run these segments.
    pub fn room_for_notes(&self, facts: &Facts, segments: &[Block], threads: usize) -> u64 {
        let value = |v| from_arguments(self.program, v, self.views, self.scalars).map(|bits| bits as i64);
        room_for_notes(self.program, facts, segments, threads, &value)
    }

    /// The memory in which threads count the terms of these segments, where arrays have these shapes, a row each.
    pub fn room_for_runs(
        &self,
        facts: &Facts,
        segments: &[Block],
        known: &BTreeMap<ParId, TermRuns>,
        shape: &[i64],
    ) -> RoomForRuns {
        let value = |v| from_arguments(self.program, v, self.views, self.scalars).map(|bits| bits as i64);
        let row = shape.len() / self.program.arrays.len().max(1);
        let extents = |array: ArrayId| shape.iter().skip(row * array.index()).take(row);
        let elements = |array: ArrayId| extents(array).fold(1, |all: u64, n| all.saturating_mul(*n as u64));
        room_for_runs((self.program, facts), segments, &value, &elements, known)
    }

    /// The bytes in which threads keep the terms of so many sums while they run these segments.
    pub fn room_for_terms(&self, sums: usize, segments: &[Block]) -> u64 {
        let value = |v| from_arguments(self.program, v, self.views, self.scalars).map(|bits| bits as i64);
        room_for_terms(sums, segments, &value)
    }

    /// The most leaves that a reduction of these segments has.
    pub fn leaves(&self, facts: &Facts, segments: &[Block]) -> i64 {
        let value = |v| from_arguments(self.program, v, self.views, self.scalars).map(|bits| bits as i64);
        let reduces = |par: &Par| {
            let facts = facts.pars.get(&par.id);
            facts.is_none_or(|facts| facts.sharing.values().any(|s| *s == Sharing::Reduce))
        };
        let mut most = 0;
        for segment in segments {
            walk(segment, &mut |stmt| {
                if let Stmt::Par(par) = stmt
                    && reduces(par)
                {
                    most = most.max(leaf::most_leaves(par, value));
                }
            });
        }
        most
    }
}

/// Can every launch tell how much a segment computes, as [`Given::work`] does?
pub(crate) fn is_countable(program: &Program, segment: &Block) -> bool {
    let mut variables = Vec::new();
    walk(segment, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            variables.extend(par.ranges.iter().map(|range| range.var));
        }
    });
    let known = |v: ValueId| follows_from_arguments(program, v);
    let mut countable = true;
    walk(segment, &mut |stmt| {
        countable &= match stmt {
            Stmt::Par(par) => par.ranges.iter().all(|range| known(range.from) && known(range.to)),
            Stmt::Loop(Loop { kind: LoopKind::For { from, to, .. }, .. }) => {
                known(*from) && (known(*to) || variables.contains(to))
            }
            Stmt::Loop(_) => false,
            Stmt::Library(call) => matches!(call.op, LibraryOp::Matmul { .. }),
            _ => true,
        };
    });
    countable
}

#[cfg(test)]
mod tests {
    use ebbtide_ir::{parse, verify};

    use super::*;

    /// How many of sixteen threads a launch with `n` elements should have.
    fn threads(text: &str, n: usize) -> usize {
        let program = parse(text).unwrap();
        let facts = verify(&program).unwrap();
        let view = View::new(std::ptr::null_mut(), &[n], 8 * n);
        let views = vec![view; program.arrays.len()];
        let given = Given { program: &program, views: &views, scalars: &[Literal::index(100)] };
        given.threads(&facts, &program.body, 16)
    }

    #[test]
    fn threads_are_as_many_as_loops_are_worth() {
        let steps = "program p(x: &mut Array1<f64>, steps: usize) {
            for t in 0..steps { for i in par(0..x.len()) { x[i] = 0.5 * x[i] + 1.0; } }
        }";
        assert_eq!([100, 2000].map(|n| threads(steps, n)), [1, 1]);
        let some = threads(steps, 20_000);
        assert!((2..16).contains(&some), "{some}");
        assert_eq!(threads(steps, 10_000_000), 16);
    }

    #[test]
    fn what_an_iteration_computes_counts() {
        let all_pairs = "program p(x: &Array1<f64>, y: &mut Array1<f64>, steps: usize) {
            for i in par(0..x.len()) {
                let mut s = 0.0;
                for j in 0..x.len() { s = s + x[i] * x[j]; }
                y[i] = s;
            }
        }";
        assert_eq!(threads(all_pairs, 20), 1);
        assert_eq!(threads(all_pairs, 1024), 16);
    }

    #[test]
    fn a_domain_of_unknown_size_is_as_large_as_its_arrays() {
        let few = "program p(n: &Array1<f64>, x: &mut Array1<f64>, steps: usize) {
            for i in par(0..n[0] as usize) { x[i] = 0.5 * x[i]; }
        }";
        assert_eq!([100, 100_000].map(|n| threads(few, n)), [1, 16]);
    }
}
