//! How much the loops of a segment compute. Input: a segment, the shapes and scalars of a launch; output: its work, whether
//! several threads should share it, and how many partial sums its reductions keep at most.
//!
//! The unit of work is an addition. What cannot be computed from the arguments of a launch is estimated.

use ebbtide_codegen::{WORTH_SHARING, room_for_notes, room_for_terms};
use ebbtide_ir::{
    ArrayId, Block, Facts, LibraryCall, LibraryOp, Literal, Loop, LoopKind, Op, Par, Program, Sharing, Stmt,
    ValueId, leaf, walk,
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

/// What a launch knows.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub program: &'a Program,
    pub views: &'a [View],
    pub scalars: &'a [Literal],
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

    /// Is some statement of the segment worth several threads?
    pub fn worth_sharing(&self, facts: &Facts, segment: &Block) -> bool {
        let mut worth = false;
        walk(segment, &mut |stmt| {
            worth = worth
                || match stmt {
                    Stmt::Par(par) => self.loop_is_worth_sharing(facts, par),
                    Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Copy { to: a, .. } => self.elements(*a) >= MANY,
                    Stmt::Push(push) => self.elements(push.array) >= MANY,
                    Stmt::Library(call) => {
                        self.multiplications(call).is_some_and(|work| work >= WORTH_SHARING)
                    }
                    _ => false,
                };
        });
        worth
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
