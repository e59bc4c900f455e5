//! The interior of a parallel loop: where its indices are in bounds, its remainders do not wrap and its boundary
//! conditions are decided.
//!
//! Everything here is a sum `coefficient · j + base`, with `j` the innermost parallel variable and `base` the
//! same for all `j`. Each thing that the interior form takes for granted narrows the interval of `j`; whether
//! it was a good guess decides speed, never correctness.

mod linear;
mod narrowing;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Compare, Indices, Literal, LoopKind, Op, Par, Program, Stmt, Type, Unary,
    ValueId,
};

use crate::analysis::boundary_conditions::far_from_boundaries;
use crate::analysis::direction::{Direction, direction};
use crate::analysis::exact::{Exact, may_overflow};
use crate::analysis::varying::Varying;
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::kernel::interval::{Before, Corner, Narrowing, Ranges, Rows, Scope, Way};

pub(crate) use linear::Linear;

/// Coefficients at least this large are not worth a proof.
const LARGE: i64 = 1 << 20;

/// A loop around what is looked at: its variable and its bounds.
type Around = (ValueId, ValueId, ValueId);

/// What the interior form takes for granted.
#[derive(Debug)]
pub(crate) struct Interior {
    pub varying: Varying,
    /// Uniform index values that are computed before the innermost loop.
    pub early: BTreeSet<ValueId>,
    /// What is computed before the innermost loop, in order.
    before: Vec<Before>,
    /// Remainders that are `x - multiple` in the interior: the name of their base.
    wraps: BTreeMap<ValueId, Linear>,
    /// Conditions with their value in the interior.
    pub decided: BTreeMap<ValueId, bool>,
    /// Accesses (by index) that the interval does not prove to be in bounds.
    pub unproved: BTreeSet<Vec<ValueId>>,
    /// The index values that are numbers in the interior, besides what cannot be anything else.
    pub exact: Exact,
    /// Sums that must be tame for that, each in its scope.
    sums: BTreeSet<(Scope, IndexExpr)>,
    /// What narrows `lo` and `hi`, each once.
    narrowing: Vec<Narrowing>,
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
}

/// The interior of a parallel loop whose values are `inside`.
pub(crate) fn interior(program: &Program, par: &Par, inside: &BTreeSet<ValueId>, decide: Decide) -> Interior {
    let outer: BTreeSet<ValueId> = par.ranges.iter().rev().skip(1).map(|r| r.var).collect();
    let mut interior = Interior {
        varying: Varying::of(program, par),
        // The outer variables stand still while the innermost one runs.
        early: outer.clone(),
        before: Vec::new(),
        wraps: BTreeMap::new(),
        decided: BTreeMap::new(),
        unproved: BTreeSet::new(),
        exact: Exact::default(),
        sums: BTreeSet::new(),
        narrowing: Vec::new(),
        rows: Rows::Corners,
        outer,
        inside: inside.clone(),
        innermost: par.ranges.last().map(|r| r.var),
    };
    Search { program, decide }.block(&mut interior, &par.body, &mut Vec::new());
    interior
}

struct Search<'p> {
    program: &'p Program,
    decide: Decide,
}

impl Search<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&self, interior: &mut Interior, block: &Block, loops: &mut Vec<Around>) {
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
                        self.prove(interior, array, index, loops);
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => self.prove(interior, s.array, s.index, loops),
                Stmt::Claim(claim) => self.prove(interior, claim.array, claim.index, loops),
                Stmt::If(branch) => match interior.decided.get(&branch.condition) {
                    Some(true) => self.block(interior, &branch.then, loops),
                    Some(false) => self.block(interior, &branch.otherwise, loops),
                    None => {
                        self.block(interior, &branch.then, loops);
                        self.block(interior, &branch.otherwise, loops);
                    }
                },
                Stmt::Loop(l) => {
                    if let LoopKind::For { var, from, to } = l.kind {
                        [from, to].into_iter().for_each(|v| self.exact_value(interior, v, loops));
                        loops.push((var, from, to));
                        self.block(interior, &l.body, loops);
                        loops.pop();
                    } else {
                        stmt.blocks().for_each(|b| self.block(interior, b, loops));
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
                interior.keep_exact(&side);
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
        if !may_overflow(self.program, &interior.exact, v) {
            return;
        }
        let Some(sum) = interior.linear(self.program, v, loops) else { return };
        let used: Vec<_> = loops.iter().filter(|l| sum.base.mentions(l.0)).copied().collect();
        let Some(corners) = self.corners(interior, &used, &sum.base) else { return };
        interior.keep_exact(&sum);
        interior.sums.extend(corners.into_iter().map(|scope| (scope, sum.exact.clone())));
        Rc::make_mut(&mut interior.exact).insert(v);
    }

    /// The first and the last values of loop variables, as declarations in C, where the ranges are the same for a whole row.
    fn bounds(&self, interior: &mut Interior, loops: &[Around]) -> Option<Vec<(Corner, Corner)>> {
        let mut bounds = Vec::with_capacity(loops.len());
        for (_, from, to) in loops {
            let (from, to) =
                (interior.linear(self.program, *from, &[])?, interior.linear(self.program, *to, &[])?);
            if from.coefficient != 0 || to.coefficient != 0 {
                return None;
            }
            // A variable that runs up to an outer one, times an outer one, is not a sum.
            if interior.mentions_outer(&from.base) || interior.mentions_outer(&to.base) {
                interior.rows = Rows::Each;
            }
            bounds.push((Corner::First(from.tame()), Corner::Last(to.tame())));
        }
        Some(bounds)
    }

    /// The values of these loop variables at the corners of their ranges where a sum, or a part of it, may be least or greatest: it is
    /// monotone in each of them. Variables with which it is known to grow, or to shrink, go together, and each other one doubles the
    /// corners. A sum of too many variables has none: the conditions would be longer than the loop.
    fn corners(&self, interior: &mut Interior, loops: &[Around], sum: &IndexExpr) -> Option<Vec<Scope>> {
        const MOST_VARIABLES: usize = 6;
        let bounds = self.bounds(interior, loops)?;
        if loops.len() > MOST_VARIABLES {
            return None;
        }
        let directions: Vec<_> = loops.iter().map(|l| direction(sum, l.0)).collect();
        let together = directions.iter().flatten().find(|d| **d != Direction::Stays).copied();
        let mut bits = usize::from(directions.iter().any(Option::is_some));
        let mut bit_of = |known: &Option<Direction>| {
            let bit = if known.is_some() { 0 } else { bits };
            bits += usize::from(known.is_none());
            (bit, together.is_some_and(|together| *known == Some(-together)))
        };
        let bit_of: Vec<(usize, bool)> = directions.iter().map(&mut bit_of).collect();
        let scope = |corner: usize| {
            let each = loops.iter().zip(&bounds).zip(&bit_of).map(|((l, (first, last)), (bit, opposite))| {
                (l.0, if (corner >> bit & 1 == 0) != *opposite { first.clone() } else { last.clone() })
            });
            each.collect()
        };
        Some((0..1usize << bits).map(scope).collect())
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
                interior.keep_exact(&a);
                interior.keep_exact(&b);
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

    /// The ranges, the same for all iterations, of loops whose variable is in an index. Where one is empty, the access is never
    /// reached, and its corners may be out of bounds; one that begins at zero has no such corner before its end. An access
    /// without the variable may be hoisted out of the loop, and is reached even so.
    fn fixed_ranges(&self, interior: &Interior, loops: &[Around], sums: &[(Vec<Scope>, Linear)]) -> Ranges {
        let zero = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64) == Some(0);
        let fixed = |v: ValueId| self.program.literal(v).is_some() || !interior.inside.contains(&v);
        let used = |v: ValueId| sums.iter().any(|(_, sum)| sum.base.mentions(v));
        let ends =
            loops.iter().filter(|(v, from, to)| used(*v) && fixed(*from) && fixed(*to) && !zero(*from));
        ends.map(|(_, from, to)| [*from, *to].map(|v| IndexExpr::value(self.program, v))).collect()
    }

    /// Narrows to where an access is in bounds, or remembers that it must be checked.
    fn prove(&self, interior: &mut Interior, array: ArrayId, index: Indices, loops: &[Around]) {
        let mut of = |v: &ValueId| {
            let sum = interior.linear(self.program, *v, loops)?;
            let used: Vec<_> = loops.iter().filter(|l| sum.base.mentions(l.0)).copied().collect();
            Some((self.corners(interior, &used, &sum.base)?, sum))
        };
        let sums: Option<Vec<(Vec<Scope>, Linear)>> = index.as_slice().iter().map(&mut of).collect();
        let (Some(sums), Some(_)) = (sums, self.bounds(interior, loops)) else {
            interior.unproved.insert(index.as_slice().to_vec());
            return;
        };
        let ranges = self.fixed_ranges(interior, loops, &sums);
        for (k, (corners, sum)) in sums.into_iter().enumerate() {
            for scope in corners {
                let extent = IndexExpr::Extent(array, k);
                interior.once(Narrowing::Within(scope, sum.for_proofs(), extent, ranges.clone()));
            }
        }
    }
}

impl Interior {
    /// A value as a sum, in terms of names that are known before the innermost loop (and of the variables of
    /// `loops`, which the caller replaces by their bounds).
    fn linear(&self, program: &Program, v: ValueId, loops: &[Around]) -> Option<Linear> {
        self.sum(program, v, &|v| self.early.contains(&v) || loops.iter().any(|l| l.0 == v))
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
