//! Parallel loops whose every access can be proved to be in bounds before the loop starts, guards included.
//!
//! An index is a sum of variables with known ranges, a choice between such sums, or a remainder that goes around once at most; an
//! `if` around an access narrows them. The proof is a handful of comparisons of extents and bounds, the same for all threads. Where
//! it holds, the body needs no checks, and without checks no branches: conditions become predicates, and all loads of an iteration
//! can be on their way at once.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Binary, Block, Compare, Facts, Indices, Loop, LoopKind, Op, Par, ParFacts, Program, Sharing,
    Stmt, Type, ValueId,
};

use crate::analysis::exact::may_overflow;
use crate::analysis::names::sharing;
use crate::analysis::narrow_index::narrow_values;
use crate::analysis::remainders::{Remainder, Remainders, remainder};
use crate::kernel::bounds_test::Test;
use crate::kernel::index_expr::Arithmetic::{Add, Mul, Sub};
use crate::kernel::index_expr::IndexExpr;

/// What conditions say of a value: at least the first, below the second.
type Guards = BTreeMap<ValueId, (Option<IndexExpr>, Option<IndexExpr>)>;

/// A range: its first value, and the one after its last.
type Range = (IndexExpr, IndexExpr);

/// What proves that a loop needs no checks.
#[derive(Default)]
pub(crate) struct Proof {
    /// The conditions, which must all hold.
    pub tests: BTreeSet<Test>,
    /// The values that are numbers then.
    pub exact: BTreeSet<ValueId>,
    /// The remainders whose divisors are not zero.
    pub remainders: Remainders,
    /// Where the loops end that have these variables.
    ends: BTreeMap<ValueId, ValueId>,
    /// The ranges of these values, which must be tame.
    ranges: BTreeMap<ValueId, Range>,
}

impl Proof {
    fn not_negative(&mut self, e: IndexExpr) {
        if !matches!(e, IndexExpr::Number(0..) | IndexExpr::Constant(0..)) {
            self.tests.insert(Test::NotNegative(e));
        }
    }

    /// Adds the tests that make values numbers, where no other test computes the same.
    fn keep_exact(mut self) -> Proof {
        for (first, end) in std::mem::take(&mut self.ranges).into_values() {
            let known = |part: &IndexExpr| {
                self.tests.iter().any(|test| test.operands().any(|operand| operand.contains(part)))
            };
            if !known(&first) || !known(&end) {
                self.tests.insert(Test::Tame(first, end));
            }
        }
        self
    }
}

/// What a proof may speak of.
pub(crate) struct Prover<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    /// The values of the loop: all others are the same in all iterations.
    pub inside: &'a BTreeSet<ValueId>,
}

impl Prover<'_> {
    /// The tests that prove all accesses of a loop; `None` where some access is not a sum of ranges.
    pub fn proof(&self, par: &Par) -> Option<Proof> {
        let mut guards: Guards = ranges(par).collect();
        let mut proof = Proof::default();
        proof.ends.extend(par.ranges.iter().map(|range| (range.var, range.to)));
        self.prove_block(&par.body, &mut guards, &sharing(self.facts, par), &mut proof)?;
        // What is near the variables of the loop fits where these are narrow, which is tested too.
        let narrow = narrow_values(self.program, par, &proof.remainders);
        proof.ranges.retain(|v, _| !narrow.contains_key(v));
        Some(proof.keep_exact())
    }

    /// The tests that prove all accesses of a loop's iterations, where the ranges of its parallel loops are printed.
    pub fn proof_of_iterations(&self, l: &Loop) -> Option<Proof> {
        let (mut guards, mut proof) = (Guards::new(), Proof::default());
        self.prove_loop(l, &mut guards, &ParFacts::default(), &mut proof)?;
        Some(proof.keep_exact())
    }

    /// The depth of recursion is that of nesting in the source.
    fn prove_block(
        &self,
        block: &Block,
        guards: &mut Guards,
        shared: &ParFacts,
        proof: &mut Proof,
    ) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => match *self.program.op(*v) {
                    Op::Load(array, index) => self.prove_access(array, index, guards, proof)?,
                    Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b)
                        if !self.program.ty(*v).is_float() =>
                    {
                        // A divisor that may be zero needs a look.
                        let proved = self.prove_remainder(*v, guards, proof).is_some();
                        let literal = self.program.literal(b).and_then(|l| l.to_i64());
                        (proved || literal.is_some_and(|l| l != 0)).then_some(())?;
                    }
                    Op::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Min | Binary::Max, ..)
                    | Op::Select(..)
                        if self.program.ty(*v) == Type::Index =>
                    {
                        self.prove_exact(*v, guards, proof);
                    }
                    _ => {}
                },
                // The element of a sum over all iterations is looked at behind the loop.
                Stmt::Update(_, s) if shared.of(s) == Sharing::Reduce => {}
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    self.prove_access(s.array, s.index, guards, proof)?;
                }
                Stmt::If(branch) => {
                    let mut then = guards.clone();
                    self.learn(branch.condition, true, &mut then);
                    self.prove_block(&branch.then, &mut then, shared, proof)?;
                    let mut otherwise = guards.clone();
                    self.learn(branch.condition, false, &mut otherwise);
                    self.prove_block(&branch.otherwise, &mut otherwise, shared, proof)?;
                }
                Stmt::Loop(l) => self.prove_loop(l, guards, shared, proof)?,
                Stmt::Par(par) => {
                    guards.extend(ranges(par));
                    proof.ends.extend(par.ranges.iter().map(|range| (range.var, range.to)));
                    self.prove_block(&par.body, guards, &sharing(self.facts, par), proof)?;
                }
                Stmt::Call(call) => self.prove_block(&call.body, guards, shared, proof)?,
                // Taking an element is a fault that must be met at once.
                Stmt::Claim(_) => return None,
                _ => {}
            }
        }
        Some(())
    }

    fn prove_loop(&self, l: &Loop, guards: &mut Guards, shared: &ParFacts, proof: &mut Proof) -> Option<()> {
        let LoopKind::For { var, from, to } = l.kind else { return None };
        self.prove_exact(from, guards, proof);
        self.prove_exact(to, guards, proof);
        proof.ends.insert(var, to);
        let (from, to) = (self.range(from, guards)?.0, self.range(to, guards)?.1);
        // The last value of the upper bound is one below its range's end.
        let to = before(to);
        guards.insert(var, (Some(from), Some(to)));
        self.prove_block(&l.body, guards, shared, proof)
    }

    fn prove_access(&self, array: ArrayId, index: Indices, guards: &Guards, proof: &mut Proof) -> Option<()> {
        for (k, v) in index.as_slice().iter().enumerate() {
            let (first, end) = self.range(*v, guards)?;
            proof.not_negative(first);
            proof.tests.insert(Test::AtMost(end, array, k));
        }
        Some(())
    }

    /// Proves that a remainder is less than its divisor, and that it takes one step at most where its variable goes as far as that.
    fn prove_remainder(&self, v: ValueId, guards: &mut Guards, proof: &mut Proof) -> Option<()> {
        let Op::Binary(kind, sum, divisor) = *self.program.op(v) else { return None };
        if self.program.ty(v) != Type::Index || kind == Binary::Div {
            return None;
        }
        // What it is computed from is a number.
        let (least, _) = self.range(sum, guards)?;
        let (period, end) = (self.outside_number(divisor)?, self.outside(divisor)?);
        match self.program.literal(divisor).and_then(|l| l.to_i64()) {
            Some(..=0) => return None,
            Some(_) => {}
            None => proof.not_negative(before(period.clone())),
        }
        if kind == Binary::Rem {
            proof.not_negative(least);
        }
        let near = remainder(self.program, self.facts, v).filter(|found| self.is_near(found, proof));
        if let Some(found) = &near {
            let (first, end) = self.range_of_sum(found, guards)?;
            let twice = IndexExpr::checked(Add, period.clone(), period.clone());
            proof.not_negative(IndexExpr::checked(Add, first, period.clone()));
            proof.not_negative(IndexExpr::checked(Sub, twice, end));
            proof.tests.insert(Test::Narrow(period));
        }
        proof.remainders.insert(v, near);
        proof.exact.insert(v);
        guards.insert(v, (Some(IndexExpr::Number(0)), Some(end)));
        Some(())
    }

    /// Does the variable of a remainder go as far as its divisor? Others may be many periods away.
    fn is_near(&self, remainder: &Remainder, proof: &Proof) -> bool {
        let affines = &self.facts.affines;
        let end = proof.ends.get(&remainder.variable);
        end.is_some_and(|end| affines.form(*end) == affines.form(remainder.divisor))
    }

    /// The range of the sum of a remainder.
    fn range_of_sum(&self, remainder: &Remainder, guards: &Guards) -> Option<Range> {
        let (first, end) = self.range(remainder.variable, guards)?;
        let offset = || IndexExpr::Number(remainder.offset);
        Some(match remainder.falls {
            false => (IndexExpr::checked(Add, first, offset()), IndexExpr::checked(Add, end, offset())),
            true => {
                let below = |e| after(IndexExpr::checked(Sub, offset(), e));
                (below(end), below(first))
            }
        })
    }

    /// Takes a value for a number, if the ranges of its operands are known.
    fn prove_exact(&self, v: ValueId, guards: &Guards, proof: &mut Proof) {
        let range =
            if self.outside(v).is_some() { self.range(v, guards) } else { self.arithmetic(v, guards) };
        if let Some(range) = range {
            proof.exact.insert(v);
            proof.ranges.insert(v, range);
        }
    }

    /// What a condition says where it holds, or does not.
    fn learn(&self, condition: ValueId, holds: bool, guards: &mut Guards) {
        match *self.program.op(condition) {
            Op::Binary(Binary::And, a, b) if holds => {
                self.learn(a, holds, guards);
                self.learn(b, holds, guards);
            }
            Op::Binary(Binary::Or, a, b) if !holds => {
                self.learn(a, holds, guards);
                self.learn(b, holds, guards);
            }
            Op::Compare(op, a, b) if self.program.ty(a) == Type::Index => {
                let op = if holds { op } else { opposite(op) };
                if let Some(bound) = self.outside_number(b) {
                    narrow(guards.entry(a).or_default(), op, &bound);
                }
                if let Some(bound) = self.outside_number(a) {
                    narrow(guards.entry(b).or_default(), mirrored(op), &bound);
                }
            }
            _ => {}
        }
    }

    /// A value that is the same in all iterations.
    fn outside(&self, v: ValueId) -> Option<IndexExpr> {
        (self.program.literal(v).is_some() || !self.inside.contains(&v))
            .then(|| IndexExpr::value(self.program, v))
    }

    /// The same, in a proof: it is wild where it is no number, and nothing is known of that before the loop.
    fn outside_number(&self, v: ValueId) -> Option<IndexExpr> {
        let value = self.outside(v)?;
        Some(if may_overflow(self.program, &BTreeSet::new(), v) { value.tamed() } else { value })
    }

    /// The range of an index. The depth of recursion is that of the expression in the source.
    fn range(&self, v: ValueId, guards: &Guards) -> Option<Range> {
        if let (Some(first), Some(value)) = (self.outside_number(v), self.outside(v)) {
            return Some((first, after(value)));
        }
        let known = guards.get(&v);
        if let Some((Some(first), Some(end))) = known {
            return Some((first.clone(), end.clone()));
        }
        let (first, end) = self.arithmetic(v, guards)?;
        // One side may be known better.
        Some(match known {
            Some((lower, upper)) => (lower.clone().unwrap_or(first), upper.clone().unwrap_or(end)),
            None => (first, end),
        })
    }

    /// The range of a sum, a product or a choice, from those of its operands.
    fn arithmetic(&self, v: ValueId, guards: &Guards) -> Option<Range> {
        let (add, sub) = (|a, b| IndexExpr::checked(Add, a, b), |a, b| IndexExpr::checked(Sub, a, b));
        Some(match *self.program.op(v) {
            Op::Binary(Binary::Add, a, b) => {
                let (a, b) = (self.range(a, guards)?, self.range(b, guards)?);
                (add(a.0, b.0), before(add(a.1, b.1)))
            }
            Op::Binary(Binary::Sub, a, b) => {
                let (a, b) = (self.range(a, guards)?, self.range(b, guards)?);
                (after(sub(a.0, b.1)), sub(a.1, b.0))
            }
            Op::Binary(Binary::Mul, a, b) => {
                let constant = |v| self.program.literal(v).and_then(|l| l.to_i64()).filter(|c| *c >= 0);
                let (factor, other) = match (constant(a), constant(b)) {
                    (Some(c), _) => (c, b),
                    (_, Some(c)) => (c, a),
                    _ => return None,
                };
                let (first, end) = self.range(other, guards)?;
                let times = |e| IndexExpr::checked(Mul, e, IndexExpr::Factor(factor));
                (times(first), after(times(before(end))))
            }
            Op::Binary(op @ (Binary::Min | Binary::Max), a, b) => {
                let choose = if op == Binary::Min { IndexExpr::min } else { IndexExpr::max };
                let (a, b) = (self.range(a, guards)?, self.range(b, guards)?);
                (choose(a.0, b.0), choose(a.1, b.1))
            }
            Op::Select(condition, a, b) => {
                let (mut then, mut otherwise) = (guards.clone(), guards.clone());
                self.learn(condition, true, &mut then);
                self.learn(condition, false, &mut otherwise);
                let (a, b) = (self.range(a, &then)?, self.range(b, &otherwise)?);
                (IndexExpr::min(a.0, b.0), IndexExpr::max(a.1, b.1))
            }
            _ => return None,
        })
    }
}

fn after(e: IndexExpr) -> IndexExpr {
    IndexExpr::checked(Add, e, IndexExpr::Number(1))
}

fn before(e: IndexExpr) -> IndexExpr {
    IndexExpr::checked(Sub, e, IndexExpr::Number(1))
}

/// What is known of the variables of a parallel loop.
fn ranges(par: &Par) -> impl Iterator<Item = (ValueId, (Option<IndexExpr>, Option<IndexExpr>))> + '_ {
    let range = |(d, range): (usize, &ebbtide_ir::Range)| {
        (range.var, (Some(IndexExpr::First(d)), Some(IndexExpr::End(d))))
    };
    par.ranges.iter().enumerate().map(range)
}

/// What `value op bound` says of the value.
fn narrow(known: &mut (Option<IndexExpr>, Option<IndexExpr>), op: Compare, bound: &IndexExpr) {
    let bound = bound.clone();
    match op {
        Compare::Ge => known.0 = Some(bound),
        Compare::Gt => known.0 = Some(after(bound)),
        Compare::Lt => known.1 = Some(bound),
        Compare::Le => known.1 = Some(after(bound)),
        Compare::Eq => *known = (Some(bound.clone()), Some(after(bound))),
        Compare::Ne => {}
    }
}

fn opposite(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}

/// The comparison with its sides exchanged.
fn mirrored(op: Compare) -> Compare {
    match op {
        Compare::Lt => Compare::Gt,
        Compare::Gt => Compare::Lt,
        Compare::Le => Compare::Ge,
        Compare::Ge => Compare::Le,
        same => same,
    }
}
