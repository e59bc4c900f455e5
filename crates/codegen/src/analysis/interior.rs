//! The interior of a parallel loop: where its indices are in bounds, its remainders do not wrap and its boundary
//! conditions are decided.
//!
//! Everything here is a sum `coefficient · j + base`, with `j` the innermost parallel variable and `base` the
//! same for all `j`. Each thing that the interior form takes for granted narrows the interval of `j`; whether
//! it was a good guess decides speed, never correctness.

mod linear;
mod narrowing;
mod ranges;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Compare, Indices, Literal, LoopKind, Op, Par, Program, Stmt, Type, Unary,
    ValueId,
};

use crate::analysis::boundary_conditions::far_from_boundaries;
use crate::analysis::exact::{Exact, may_overflow};
use crate::analysis::varying::Varying;
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::interval::{Before, Narrowing, Rows, Scope, Way};

pub(crate) use linear::Linear;
use ranges::{Around, At};

/// Coefficients at least this large are not worth a proof.
const LARGE: i64 = 1 << 20;

/// Accesses, by index, that are not proved to be in bounds.
pub(crate) type Unproved = BTreeSet<Vec<ValueId>>;

/// What the interior form takes for granted.
#[derive(Debug)]
pub(crate) struct Interior {
    pub varying: Varying,
    /// The variables of loops that begin elsewhere in each iteration, by sums: an iteration of such a loop is one for all
    /// iterations of the parallel loop that have it.
    shared: BTreeSet<ValueId>,
    /// The variables of loops that are as long in each iteration, but begin elsewhere: what they count is their variable without the
    /// multiple of the innermost one in it.
    shifted: BTreeSet<ValueId>,
    /// Uniform index values that are computed before the innermost loop.
    pub early: BTreeSet<ValueId>,
    /// What is computed before the innermost loop, in order.
    before: Vec<Before>,
    /// Remainders that are `x - multiple` in the interior: the name of their base.
    wraps: BTreeMap<ValueId, Linear>,
    /// Conditions with their value in the interior.
    pub decided: BTreeMap<ValueId, bool>,
    /// Accesses (by index) that the interval does not prove to be in bounds.
    pub unproved: Unproved,
    /// Accesses (by index) that are proved for an iteration where it has them, and not where its neighbours alone have them.
    pub own: BTreeSet<Vec<ValueId>>,
    /// The index values that are numbers in the interior, besides what cannot be anything else.
    pub exact: Exact,
    /// Sums that must be tame for that, each in its scope, and the values that they make numbers.
    sums: BTreeMap<(Scope, IndexExpr), BTreeSet<ValueId>>,
    /// What narrows `lo` and `hi`, each once.
    narrowing: Vec<Narrowing>,
    /// What of it keeps accesses in bounds, and does nothing else.
    of_accesses: BTreeSet<Narrowing>,
    /// Which rows the narrowing must be done for.
    pub rows: Rows,
    /// The values among `early` that differ between rows.
    outer: BTreeSet<ValueId>,
    /// The values of the loop.
    inside: BTreeSet<ValueId>,
    /// The innermost variable.
    innermost: Option<ValueId>,
}

/// Which conditions an interior decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decide {
    /// Those that differ between the iterations of a row.
    Columns,
    /// Those that are the same for a whole row too: a wide machine loads nothing before it has their answer.
    RowsToo,
    /// None, and no remainder or clamp is taken for one of its sides: what is found holds for whole rows, where a proof keeps
    /// accesses in bounds. No access narrows it.
    Nothing,
}

/// The interior of a parallel loop whose values are `inside`.
pub(crate) fn interior(program: &Program, par: &Par, inside: &BTreeSet<ValueId>, decide: Decide) -> Interior {
    let found = with_shared(program, par, inside, decide, BTreeSet::new());
    match found.shared.is_empty() {
        true => found,
        // What is computed from the variables of these loops alone is the same for all iterations.
        false => with_shared(program, par, inside, decide, found.shared),
    }
}

/// What holds for whole rows of a loop whose accesses are proved, where these values are numbers.
pub(crate) fn whole_rows(
    program: &Program,
    par: &Par,
    inside: &BTreeSet<ValueId>,
    exact: &BTreeSet<ValueId>,
) -> Interior {
    Interior { exact: Rc::new(exact.clone()), ..interior(program, par, inside, Decide::Nothing) }
}

/// The same, where iterations of the parallel loop go through some loops together: the variables of these are given.
fn with_shared(
    program: &Program,
    par: &Par,
    inside: &BTreeSet<ValueId>,
    decide: Decide,
    shared: BTreeSet<ValueId>,
) -> Interior {
    let outer: BTreeSet<ValueId> = par.ranges.iter().rev().skip(1).map(|r| r.var).collect();
    let mut interior = Interior {
        varying: Varying::of(program, par, &shared),
        shared,
        shifted: BTreeSet::new(),
        // The outer variables stand still while the innermost one runs.
        early: outer.clone(),
        before: Vec::new(),
        wraps: BTreeMap::new(),
        decided: BTreeMap::new(),
        unproved: Unproved::new(),
        own: BTreeSet::new(),
        exact: Exact::default(),
        sums: BTreeMap::new(),
        narrowing: Vec::new(),
        of_accesses: BTreeSet::new(),
        rows: Rows::Corners,
        outer,
        inside: inside.clone(),
        innermost: par.ranges.last().map(|r| r.var),
    };
    Search { program, decide }.block(&mut interior, &par.body, &mut Vec::new(), Reached::ByAll);
    interior
}

struct Search<'p> {
    program: &'p Program,
    decide: Decide,
}

/// Which lanes of a vector come to a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    ByAll,
    /// Some alone: in vectors the others touch the same elements, which must exist for them too.
    BySome,
}

impl Search<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&self, interior: &mut Interior, block: &Block, loops: &mut Vec<Around>, reached: Reached) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    self.value(interior, *v, loops);
                    if let Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) = *self.program.op(*v)
                        && self.program.ty(*v) == Type::Index
                    {
                        self.exact_value(interior, *v, loops);
                    }
                    if let Op::Load(array, index) = *self.program.op(*v) {
                        self.prove(interior, (array, index), loops, reached);
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    self.prove(interior, (s.array, s.index), loops, reached)
                }
                Stmt::Claim(claim) => self.prove(interior, (claim.array, claim.index), loops, reached),
                Stmt::If(branch) => match interior.decided.get(&branch.condition) {
                    Some(true) => self.block(interior, &branch.then, loops, reached),
                    Some(false) => self.block(interior, &branch.otherwise, loops, reached),
                    None => {
                        let alike = interior.varying.uniform(branch.condition);
                        let reached = if alike { reached } else { Reached::BySome };
                        self.block(interior, &branch.then, loops, reached);
                        self.block(interior, &branch.otherwise, loops, reached);
                    }
                },
                Stmt::Loop(l) => {
                    if let LoopKind::For { var, from, to } = l.kind {
                        [from, to].into_iter().for_each(|v| self.exact_value(interior, v, loops));
                        self.share(interior, (var, from, to));
                        loops.push((var, from, to));
                        let alike = !interior.varying.loop_diverges(l);
                        let reached = if alike { reached } else { Reached::BySome };
                        self.block(interior, &l.body, loops, reached);
                        loops.pop();
                    } else {
                        stmt.blocks().for_each(|b| self.block(interior, b, loops, Reached::BySome));
                    }
                }
                _ => {}
            }
        }
    }

    fn value(&self, interior: &mut Interior, v: ValueId, loops: &[Around]) {
        let op = *self.program.op(v);
        let inner = |v: ValueId| loops.iter().any(|l| l.0 == v);
        if interior.varying.uniform(v) {
            let known = |o: ValueId| interior.early.contains(&o) || !interior.inside.contains(&o);
            if self.program.ty(v) == Type::Index
                && op.is_pure()
                && op.operands().all(|o| known(o) && !inner(o))
            {
                // The careful form reports a zero divisor.
                if let Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) = op {
                    interior.narrowing.push(Narrowing::NotZero(b));
                }
                if !matches!(op, Op::Literal(_)) {
                    interior.before.push(Before::Value(v));
                }
                interior.early.insert(v);
                interior.follow(v, &op);
            }
            if self.decide == Decide::RowsToo && self.program.ty(v) == Type::Bool {
                self.condition(interior, v, loops);
            }
            return;
        }
        if self.decide == Decide::Nothing {
            return;
        }
        if self.program.ty(v) == Type::Bool {
            self.condition(interior, v, loops);
            return;
        }
        match op {
            Op::Binary(kind @ (Binary::Rem | Binary::RemEuclid), x, m)
                if self.program.ty(v) == Type::Index =>
            {
                let (Some(x), Some(m)) =
                    (interior.linear(self.program, x, loops), interior.linear(self.program, m, &[]))
                else {
                    return;
                };
                if x.coefficient.unsigned_abs() != 1
                    || m.coefficient != 0
                    || loops.iter().any(|l| x.base.mentions(l.0))
                {
                    return;
                }
                if interior.mentions_outer(&x.base) || interior.mentions_outer(&m.base) {
                    interior.rows = Rows::Each;
                }
                let way = if x.coefficient > 0 { Way::Up } else { Way::Down };
                // Whichever multiple it is: below, the interior is where it is the right one.
                interior.before.push(Before::Wrapped { v, base: x.tame(), modulus: m.tame(), way });
                let wrapped = Linear::new(x.coefficient, IndexExpr::Wrapped(v));
                interior.narrow(&wrapped, m.tame());
                if kind == Binary::Rem {
                    interior.narrow_from_zero(&x);
                }
                interior.wraps.insert(v, wrapped);
            }
            Op::Binary(kind @ (Binary::Min | Binary::Max), a, b) if self.program.ty(v) == Type::Index => {
                // A clamp: in the interior it is the side that varies.
                let (Some(a), Some(b)) =
                    (interior.linear(self.program, a, &[]), interior.linear(self.program, b, &[]))
                else {
                    return;
                };
                let (side, bound) = if a.coefficient != 0 { (a, b) } else { (b, a) };
                if bound.coefficient != 0 {
                    return;
                }
                interior.keep_exact(side.coefficient);
                let distance = match kind {
                    Binary::Min => Linear::new(-side.coefficient, difference(bound.tame(), side.tame())),
                    _ => Linear::new(side.coefficient, difference(side.tame(), bound.tame())),
                };
                interior.narrow_from_zero(&distance);
                interior.wraps.insert(v, side);
            }
            _ => {}
        }
    }

    /// Narrows to where a value is a number, if that can be known before the innermost loop.
    fn exact_value(&self, interior: &mut Interior, v: ValueId, loops: &[Around]) {
        if self.decide == Decide::Nothing || !may_overflow(self.program, &interior.exact, v) {
            return;
        }
        let Some(sum) = interior.linear(self.program, v, loops) else { return };
        let Some(corners) = self.corners(interior, loops, &sum) else { return };
        interior.keep_exact(sum.coefficient);
        for At { scope, coefficient } in corners {
            interior.keep_exact(coefficient);
            interior.sums.entry((scope, sum.exact.clone())).or_default().insert(v);
        }
        Rc::make_mut(&mut interior.exact).insert(v);
    }

    /// Decides a boundary condition by trying it far from all boundaries, and narrows to where it holds.
    fn condition(&self, interior: &mut Interior, v: ValueId, loops: &[Around]) {
        let decided = |interior: &Interior, v: &ValueId| interior.decided.get(v).copied();
        let guess = match *self.program.op(v) {
            Op::Compare(op, a, b) if self.program.ty(a) == Type::Index => {
                let (Some(a), Some(b)) =
                    (interior.linear(self.program, a, loops), interior.linear(self.program, b, loops))
                else {
                    return;
                };
                let inner = |base: &IndexExpr| loops.iter().any(|l| base.mentions(l.0));
                if inner(&a.base) || inner(&b.base) {
                    return;
                }
                let guess = far_from_boundaries(self.program, v, 500);
                let row = a.coefficient == 0 && b.coefficient == 0;
                if row && [100, 900].iter().any(|at| far_from_boundaries(self.program, v, *at) != guess) {
                    // Not a boundary: it splits the rows.
                    return;
                }
                let Some(coefficient) = a.coefficient.checked_sub(b.coefficient) else { return };
                interior.keep_exact(a.coefficient);
                interior.keep_exact(b.coefficient);
                let difference = Linear::new(coefficient, difference(a.tame(), b.tame()));
                let negated = Linear::new(-coefficient, IndexExpr::negative(difference.base.clone()));
                let shift = |l: &Linear| {
                    Linear::new(l.coefficient, self::difference(l.base.clone(), IndexExpr::Number(1)))
                };
                match (op, guess) {
                    (Compare::Ge, true) | (Compare::Lt, false) => interior.narrow_from_zero(&difference),
                    (Compare::Gt, true) | (Compare::Le, false) => {
                        interior.narrow_from_zero(&shift(&difference))
                    }
                    (Compare::Le, true) | (Compare::Gt, false) => interior.narrow_from_zero(&negated),
                    (Compare::Lt, true) | (Compare::Ge, false) => interior.narrow_from_zero(&shift(&negated)),
                    (Compare::Ne, true) | (Compare::Eq, false) => interior.narrow_away(&difference),
                    (Compare::Eq, true) | (Compare::Ne, false) => return,
                }
                guess
            }
            Op::Binary(Binary::And, a, b) => match (decided(interior, &a), decided(interior, &b)) {
                (Some(a), Some(b)) => a & b,
                (Some(false), _) | (_, Some(false)) => false,
                (Some(true), None) => return interior.same_as(v, b),
                (None, Some(true)) => return interior.same_as(v, a),
                _ => return,
            },
            Op::Binary(Binary::Or, a, b) => match (decided(interior, &a), decided(interior, &b)) {
                (Some(a), Some(b)) => a | b,
                (Some(true), _) | (_, Some(true)) => true,
                (Some(false), None) => return interior.same_as(v, b),
                (None, Some(false)) => return interior.same_as(v, a),
                _ => return,
            },
            Op::Unary(Unary::Not, a) => match decided(interior, &a) {
                Some(a) => !a,
                None => return,
            },
            _ => return,
        };
        interior.decided.insert(v, guess);
    }

    /// Narrows to where an access is in bounds, or remembers that it must be checked.
    fn prove(
        &self,
        interior: &mut Interior,
        (array, index): (ArrayId, Indices),
        loops: &[Around],
        reached: Reached,
    ) {
        if self.decide == Decide::Nothing {
            return;
        }
        let mut of = |v: &ValueId| {
            let sum = interior.linear(self.program, *v, loops)?;
            Some((self.corners(interior, loops, &sum)?, sum))
        };
        let sums: Option<Vec<(Vec<At>, Linear)>> = index.as_slice().iter().map(&mut of).collect();
        let (Some(sums), Some(ends)) = (sums, self.ends(interior, loops)) else {
            interior.unproved.insert(index.as_slice().to_vec());
            return;
        };
        let ranges = self.fixed_ranges(interior, loops, &sums);
        for (k, (corners, sum)) in sums.into_iter().enumerate() {
            interior.note_own(&ends, loops, index.as_slice(), &sum);
            for At { scope, coefficient } in corners {
                let extent = IndexExpr::Extent(array, k);
                let narrowing = Narrowing::Within(scope, (coefficient, sum.tame()), extent, ranges.clone());
                match reached {
                    Reached::ByAll => interior.keep_in_bounds(narrowing),
                    // A proof speaks of the lanes that come here.
                    Reached::BySome => interior.once(narrowing),
                }
            }
        }
    }
}

impl Interior {
    /// Does nothing but accesses keep iterations out of it?
    pub fn takes_all(&self) -> bool {
        self.decided.is_empty() && self.wraps.is_empty()
    }

    /// A value as a sum, in terms of names that are known before the innermost loop (and of the variables of
    /// `loops`, which the caller replaces by their bounds).
    fn linear(&self, program: &Program, v: ValueId, loops: &[Around]) -> Option<Linear> {
        let around = |v: ValueId| loops.iter().any(|l| l.0 == v);
        let sum = self.sum(program, v, &|v| self.early.contains(&v) || around(v))?;
        let known = |v: &ValueId| around(*v) || !sum.base.mentions(*v);
        self.shifted.iter().all(known).then_some(sum)
    }

    /// A value as a sum, in terms of any uniform name, where its interior is proved to have it as a number.
    pub fn linear_here(&self, program: &Program, v: ValueId) -> Option<Linear> {
        self.sum(program, v, &|_| true).filter(|_| self.is_number(program, v))
    }

    /// Is every sum and product that a varying value is made of, down to where it is made of others, known to be exact?
    fn is_number(&self, program: &Program, v: ValueId) -> bool {
        if self.varying.uniform(v) || self.wraps.contains_key(&v) {
            return true;
        }
        match *program.op(v) {
            Op::Binary(..) => self.exact.contains(&v),
            Op::Select(condition, a, b) => match self.decided.get(&condition) {
                Some(chosen) => self.is_number(program, if *chosen { a } else { b }),
                None => false,
            },
            _ => true,
        }
    }

    fn sum(&self, program: &Program, v: ValueId, known: &dyn Fn(ValueId) -> bool) -> Option<Linear> {
        if let Some(wrapped) = self.wraps.get(&v) {
            return Some(wrapped.clone());
        }
        if program.ty(v) != Type::Index {
            return None;
        }
        let constant = |v: ValueId| program.literal(v).and_then(Literal::to_i64);
        if self.varying.uniform(v) {
            let outside = !self.inside.contains(&v);
            if outside || constant(v).is_some() || known(v) {
                return Some(Linear::uniform(
                    IndexExpr::value(program, v),
                    may_overflow(program, &BTreeSet::new(), v),
                ));
            }
        }
        match *program.op(v) {
            Op::LoopVar if !self.varying.uniform(v) && self.innermost == Some(v) => {
                Some(Linear::new(1, IndexExpr::Number(0)))
            }
            Op::Select(condition, a, b) => match self.decided.get(&condition) {
                Some(true) => self.sum(program, a, known),
                Some(false) => self.sum(program, b, known),
                None => None,
            },
            Op::Binary(op @ (Binary::Add | Binary::Sub), a, b) => {
                let (a, b) = (self.sum(program, a, known)?, self.sum(program, b, known)?);
                let (arithmetic, coefficient) = match op {
                    Binary::Add => (Arithmetic::Add, a.coefficient.checked_add(b.coefficient)?),
                    _ => (Arithmetic::Sub, a.coefficient.checked_sub(b.coefficient)?),
                };
                Some(match (&a.base, &b.base) {
                    (_, IndexExpr::Number(0)) => Linear { coefficient, ..a },
                    (IndexExpr::Number(0), _) if op == Binary::Add => Linear { coefficient, ..b },
                    _ => Linear {
                        coefficient,
                        base: IndexExpr::wrapping(arithmetic, a.base, b.base),
                        exact: IndexExpr::checked(arithmetic, a.exact, b.exact),
                    },
                })
            }
            Op::Binary(Binary::Mul, a, b) => {
                let (factor, other) = match (constant(a), constant(b)) {
                    (Some(c), _) => (c, b),
                    (_, Some(c)) => (c, a),
                    _ => {
                        let (a, b) = (self.sum(program, a, known)?, self.sum(program, b, known)?);
                        let uniform = a.coefficient == 0 && b.coefficient == 0;
                        return uniform.then(|| Linear {
                            coefficient: 0,
                            base: IndexExpr::wrapping(Arithmetic::Mul, a.base, b.base),
                            exact: IndexExpr::checked(Arithmetic::Mul, a.exact, b.exact),
                        });
                    }
                };
                let other = self.sum(program, other, known)?;
                let coefficient =
                    other.coefficient.checked_mul(factor).filter(|c| c.unsigned_abs() < LARGE as u64)?;
                let base = match other.base {
                    IndexExpr::Number(0) => other.base,
                    base => IndexExpr::wrapping(Arithmetic::Mul, base, IndexExpr::Constant(factor)),
                };
                let exact = match other.exact {
                    IndexExpr::Number(0) => other.exact,
                    exact => IndexExpr::checked(Arithmetic::Mul, exact, IndexExpr::Constant(factor)),
                };
                Some(Linear { coefficient, base, exact })
            }
            _ => None,
        }
    }
}

fn difference(a: IndexExpr, b: IndexExpr) -> IndexExpr {
    IndexExpr::wrapping(Arithmetic::Sub, a, b)
}

/// The arm of a branch that the interior takes, where it is decided.
pub(crate) fn taken<'b>(interior: &Interior, branch: &'b Branch) -> Option<&'b Block> {
    interior.decided.get(&branch.condition).map(|yes| if *yes { &branch.then } else { &branch.otherwise })
}
