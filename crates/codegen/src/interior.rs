//! The interior of a parallel loop: where its indices are in bounds, its remainders do not wrap and its boundary
//! conditions are decided.
//!
//! Everything here is a sum `coefficient · j + base`, with `j` the innermost parallel variable and `base` the
//! same for all `j`. Each thing that the interior form takes for granted narrows the interval of `j`; whether
//! it was a good guess decides speed, never correctness.

mod linear;
mod narrowing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use ebbtide_ir::{
    Binary, Block, Branch, Compare, Indices, Literal, LoopKind, Op, Par, Program, Stmt, Type, Unary, ValueId,
    evaluate,
};

use crate::c_types::c_literal;
use crate::exact::Exact;
use crate::lanes::Varying;
use crate::unit::{Family, Text, line};

pub(crate) use linear::Linear;
use linear::{mentions, within};

/// Coefficients at least this large are not worth a proof.
const LARGE: i64 = 1 << 20;

/// What the interior form takes for granted.
#[derive(Debug)]
pub(crate) struct Interior {
    pub varying: Varying,
    /// Uniform index values that are computed before the innermost loop.
    pub early: BTreeSet<ValueId>,
    /// Remainders that are `x - multiple` in the interior: the name of their base.
    wraps: BTreeMap<ValueId, Linear>,
    /// Conditions with their value in the interior.
    pub decided: BTreeMap<ValueId, bool>,
    /// Accesses (by index) that the interval does not prove to be in bounds.
    pub unproved: BTreeSet<Vec<ValueId>>,
    /// The index values that are numbers in the interior, besides what cannot be anything else.
    pub exact: Exact,
    /// Sums that must be tame for that, each in its scope.
    sums: BTreeSet<(String, String)>,
    /// The statements that narrow `lo` and `hi`.
    pub narrowing: String,
    /// Which rows the narrowing must be done for.
    pub rows: Rows,
    /// The values among `early` that differ between rows.
    outer: BTreeSet<ValueId>,
}

/// Which rows of an iteration space have to be looked at to know an interval that is right for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The first and the last along each dimension: everything is a sum.
    Corners,
    /// Each has an interval of its own.
    Each,
}

impl Text<'_> {
    /// Prints the names that the interior needs before the innermost loop; the statements that narrow `lo` and `hi`
    /// come back with it.
    pub fn interior(&mut self, par: &Par) -> Interior {
        self.exact = Exact::default();
        let varying = Varying::of(self.program, par);
        let mut interior = Interior {
            varying,
            // The outer variables stand still while the innermost one runs.
            early: par.ranges.iter().rev().skip(1).map(|r| r.var).collect(),
            wraps: BTreeMap::new(),
            decided: BTreeMap::new(),
            unproved: BTreeSet::new(),
            exact: Exact::default(),
            sums: BTreeSet::new(),
            narrowing: String::new(),
            rows: Rows::Corners,
            outer: par.ranges.iter().rev().skip(1).map(|r| r.var).collect(),
        };
        let mut narrowed = BTreeSet::new();
        line!(self, "i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);");
        if self.family == Family::C {
            // Lanes are counted from where the whole row begins; a GPU has no other beginning.
            line!(self, "eb_tame(&wild, f{});", par.ranges.len() - 1);
        }
        self.early(&mut interior, &mut narrowed, &par.body, &mut Vec::new());
        interior.tame_sums();
        interior.narrowing.push_str("if (__builtin_expect(wild, 0)) hi = lo;\n");
        interior
    }

    fn early(
        &mut self,
        interior: &mut Interior,
        narrowed: &mut BTreeSet<String>,
        block: &Block,
        loops: &mut Vec<(ValueId, ValueId, ValueId)>,
    ) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    self.early_value(interior, narrowed, *v, loops);
                    if let Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) = *self.program.op(*v)
                        && self.program.ty(*v) == Type::Index
                    {
                        self.exact_value(interior, narrowed, *v, loops);
                    }
                    if let Op::Load(array, index) = *self.program.op(*v) {
                        self.prove(interior, narrowed, array.index(), index, loops);
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    self.prove(interior, narrowed, s.array.index(), s.index, loops)
                }
                Stmt::Claim(claim) => self.prove(interior, narrowed, claim.array.index(), claim.index, loops),
                Stmt::If(branch) => match interior.decided.get(&branch.condition) {
                    Some(true) => self.early(interior, narrowed, &branch.then, loops),
                    Some(false) => self.early(interior, narrowed, &branch.otherwise, loops),
                    None => {
                        self.early(interior, narrowed, &branch.then, loops);
                        self.early(interior, narrowed, &branch.otherwise, loops);
                    }
                },
                Stmt::Loop(l) => {
                    if let LoopKind::For { var, from, to } = l.kind {
                        [from, to].into_iter().for_each(|v| self.exact_value(interior, narrowed, v, loops));
                        loops.push((var, from, to));
                        self.early(interior, narrowed, &l.body, loops);
                        loops.pop();
                    } else {
                        stmt.blocks().for_each(|b| self.early(interior, narrowed, b, loops));
                    }
                }
                _ => {}
            }
        }
    }

    fn early_value(
        &mut self,
        interior: &mut Interior,
        narrowed: &mut BTreeSet<String>,
        v: ValueId,
        loops: &[(ValueId, ValueId, ValueId)],
    ) {
        let op = *self.program.op(v);
        let inner = |v: ValueId| loops.iter().any(|l| l.0 == v);
        if interior.varying.uniform(v) {
            let known = |o: ValueId| interior.early.contains(&o) || !self.inside.contains(&o);
            if self.program.ty(v) == Type::Index
                && op.is_pure()
                && op.operands().all(|o| known(o) && !inner(o))
            {
                let text = match op {
                    // The careful form reports a zero divisor.
                    Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) => {
                        let divisor = self.value(b);
                        let _ = writeln!(interior.narrowing, "wild |= !{divisor};");
                        format!("({divisor} ? {} : 0)", self.scalar_operation(v, |t, o| t.value(o)))
                    }
                    _ => self.scalar_operation(v, |t, o| t.value(o)),
                };
                if !matches!(op, Op::Literal(_)) {
                    line!(self, "const i64 v{} = {text};", v.index());
                }
                interior.early.insert(v);
                interior.follow(v, &op);
            }
            // Conditions on rows are cheap to ask, but a wide machine loads nothing before it has the answer.
            if self.family == Family::Cuda && self.program.ty(v) == Type::Bool {
                self.decide(interior, narrowed, v, loops);
            }
            return;
        }
        if self.program.ty(v) == Type::Bool {
            self.decide(interior, narrowed, v, loops);
            return;
        }
        match op {
            Op::Binary(kind @ (Binary::Rem | Binary::RemEuclid), x, m)
                if self.program.ty(v) == Type::Index =>
            {
                let (Some(x), Some(m)) = (self.linear(interior, x, loops), self.linear(interior, m, &[]))
                else {
                    return;
                };
                if x.coefficient.unsigned_abs() != 1
                    || m.coefficient != 0
                    || loops.iter().any(|l| mentions(&x.base, &format!("v{}", l.0.index())))
                {
                    return;
                }
                if interior.mentions_outer(&x.base) || interior.mentions_outer(&m.base) {
                    interior.rows = Rows::Each;
                }
                let (base, m) = (&x.tame(), &m.tame());
                let middle = if x.coefficient > 0 { "(jf + jt) / 2" } else { "-((jf + jt) / 2)" };
                // Whichever multiple it is: below, the interior is where it is the right one.
                let quotient = match self.family {
                    Family::C => "eb_floor_div",
                    Family::Cuda => "eb_near_div",
                };
                line!(
                    self,
                    "const i64 w{0} = {m} > 0 ? {base} - {quotient}({base} + {middle}, {m}) * {m} : -1;",
                    v.index()
                );
                let wrapped = Linear::new(x.coefficient, format!("w{}", v.index()));
                interior.narrow(narrowed, &wrapped, m);
                if kind == Binary::Rem {
                    interior.narrow_from_zero(narrowed, &x);
                }
                interior.wraps.insert(v, wrapped);
            }
            Op::Binary(kind @ (Binary::Min | Binary::Max), a, b) if self.program.ty(v) == Type::Index => {
                // A clamp: in the interior it is the side that varies.
                let (Some(a), Some(b)) = (self.linear(interior, a, &[]), self.linear(interior, b, &[]))
                else {
                    return;
                };
                let (side, bound) = if a.coefficient != 0 { (a, b) } else { (b, a) };
                if bound.coefficient != 0 {
                    return;
                }
                interior.keep_exact(narrowed, &side);
                let distance = match kind {
                    Binary::Min => {
                        Linear::new(-side.coefficient, format!("({} - {})", bound.tame(), side.tame()))
                    }
                    _ => Linear::new(side.coefficient, format!("({} - {})", side.tame(), bound.tame())),
                };
                interior.narrow_from_zero(narrowed, &distance);
                interior.wraps.insert(v, side);
            }
            _ => {}
        }
    }

    /// Narrows to where a value is a number, if that can be known before the innermost loop.
    fn exact_value(
        &mut self,
        interior: &mut Interior,
        narrowed: &mut BTreeSet<String>,
        v: ValueId,
        loops: &[(ValueId, ValueId, ValueId)],
    ) {
        if !self.may_overflow(v) || interior.exact.contains(&v) {
            return;
        }
        let Some(sum) = self.linear(interior, v, loops) else { return };
        let used: Vec<_> =
            loops.iter().filter(|l| mentions(&sum.base, &format!("v{}", l.0.index()))).copied().collect();
        let Some(corners) = self.corners(interior, &used) else { return };
        interior.keep_exact(narrowed, &sum);
        interior.sums.extend(corners.into_iter().map(|scope| (scope, sum.exact.clone())));
        Rc::make_mut(&mut interior.exact).insert(v);
    }

    /// The values of loop variables at the corners of their ranges, as declarations in C, where the ranges are the same for a
    /// whole row: what is a sum is monotone in each of them.
    fn corners(&self, interior: &mut Interior, loops: &[(ValueId, ValueId, ValueId)]) -> Option<Vec<String>> {
        let mut bounds = Vec::with_capacity(loops.len());
        for (_, from, to) in loops {
            let (from, to) = (self.linear(interior, *from, &[])?, self.linear(interior, *to, &[])?);
            if from.coefficient != 0 || to.coefficient != 0 {
                return None;
            }
            // A variable that runs up to an outer one, times an outer one, is not a sum.
            if interior.mentions_outer(&from.base) || interior.mentions_outer(&to.base) {
                interior.rows = Rows::Each;
            }
            bounds.push((from.tame(), format!("{} - 1", to.tame())));
        }
        let scope = |corner: usize| {
            let each = loops.iter().zip(&bounds).enumerate().map(|(bit, (l, (first, last)))| {
                let value = if corner >> bit & 1 == 0 { first } else { last };
                format!("const i64 v{} = {value}; ", l.0.index())
            });
            each.collect()
        };
        Some((0..1usize << loops.len()).map(scope).collect())
    }

    /// Decides a boundary condition by trying it far from all boundaries, and narrows to where it holds.
    fn decide(
        &mut self,
        interior: &mut Interior,
        narrowed: &mut BTreeSet<String>,
        v: ValueId,
        loops: &[(ValueId, ValueId, ValueId)],
    ) {
        let decided = |interior: &Interior, v: &ValueId| interior.decided.get(v).copied();
        let guess = match *self.program.op(v) {
            Op::Compare(op, a, b) if self.program.ty(a) == Type::Index => {
                let (Some(a), Some(b)) = (self.linear(interior, a, loops), self.linear(interior, b, loops))
                else {
                    return;
                };
                let inner = |base: &str| loops.iter().any(|l| mentions(base, &format!("v{}", l.0.index())));
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
                interior.keep_exact(narrowed, &a);
                interior.keep_exact(narrowed, &b);
                let difference = Linear::new(coefficient, format!("({} - {})", a.tame(), b.tame()));
                let negated = Linear::new(-coefficient, format!("(-{})", difference.base));
                let shift = |l: &Linear| Linear::new(l.coefficient, format!("({} - 1)", l.base));
                match (op, guess) {
                    (Compare::Ge, true) | (Compare::Lt, false) => {
                        interior.narrow_from_zero(narrowed, &difference)
                    }
                    (Compare::Gt, true) | (Compare::Le, false) => {
                        interior.narrow_from_zero(narrowed, &shift(&difference))
                    }
                    (Compare::Le, true) | (Compare::Gt, false) => {
                        interior.narrow_from_zero(narrowed, &negated)
                    }
                    (Compare::Lt, true) | (Compare::Ge, false) => {
                        interior.narrow_from_zero(narrowed, &shift(&negated))
                    }
                    (Compare::Ne, true) | (Compare::Eq, false) => interior.narrow_away(narrowed, &difference),
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

    /// A value as a sum, in terms of names that are known before the innermost loop (and of the variables of
    /// `loops`, which the caller replaces by their bounds).
    pub fn linear(
        &self,
        interior: &Interior,
        v: ValueId,
        loops: &[(ValueId, ValueId, ValueId)],
    ) -> Option<Linear> {
        self.sum(interior, v, &|v| interior.early.contains(&v) || loops.iter().any(|l| l.0 == v))
    }

    /// A value as a sum, in terms of any uniform name, where its interior is proved to have it as a number.
    pub fn linear_here(&self, interior: &Interior, v: ValueId) -> Option<Linear> {
        self.sum(interior, v, &|_| true).filter(|_| self.is_number(interior, v))
    }

    /// Is every sum and product that a varying value is made of, down to where it is made of others, known to be exact?
    fn is_number(&self, interior: &Interior, v: ValueId) -> bool {
        if interior.varying.uniform(v) || interior.wraps.contains_key(&v) {
            return true;
        }
        match *self.program.op(v) {
            Op::Binary(..) => interior.exact.contains(&v),
            Op::Select(condition, a, b) => match interior.decided.get(&condition) {
                Some(chosen) => self.is_number(interior, if *chosen { a } else { b }),
                None => false,
            },
            _ => true,
        }
    }

    fn sum(&self, interior: &Interior, v: ValueId, known: &dyn Fn(ValueId) -> bool) -> Option<Linear> {
        if let Some(wrapped) = interior.wraps.get(&v) {
            return Some(wrapped.clone());
        }
        if self.program.ty(v) != Type::Index {
            return None;
        }
        let constant = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64);
        if interior.varying.uniform(v) {
            let outside = !self.inside.contains(&v);
            if outside || constant(v).is_some() || known(v) {
                return Some(Linear::uniform(self.value(v), self.may_overflow(v)));
            }
        }
        match *self.program.op(v) {
            Op::LoopVar if !interior.varying.uniform(v) && self.innermost == Some(v) => {
                Some(Linear::new(1, "0".to_string()))
            }
            Op::Select(condition, a, b) => match interior.decided.get(&condition) {
                Some(true) => self.sum(interior, a, known),
                Some(false) => self.sum(interior, b, known),
                None => None,
            },
            Op::Binary(op @ (Binary::Add | Binary::Sub), a, b) => {
                let (a, b) = (self.sum(interior, a, known)?, self.sum(interior, b, known)?);
                let (sign, name, coefficient) = match op {
                    Binary::Add => ("+", "eb_sum", a.coefficient.checked_add(b.coefficient)?),
                    _ => ("-", "eb_difference", a.coefficient.checked_sub(b.coefficient)?),
                };
                Some(match (a.base.as_str(), b.base.as_str()) {
                    (_, "0") => Linear { coefficient, ..a },
                    ("0", _) if op == Binary::Add => Linear { coefficient, ..b },
                    _ => Linear {
                        coefficient,
                        base: format!("({} {sign} {})", a.base, b.base),
                        exact: format!("{name}(&wild, {}, {})", a.exact, b.exact),
                    },
                })
            }
            Op::Binary(Binary::Mul, a, b) => {
                let (factor, other) = match (constant(a), constant(b)) {
                    (Some(c), _) => (c, b),
                    (_, Some(c)) => (c, a),
                    _ => {
                        let (a, b) = (self.sum(interior, a, known)?, self.sum(interior, b, known)?);
                        let uniform = a.coefficient == 0 && b.coefficient == 0;
                        return uniform.then(|| Linear {
                            coefficient: 0,
                            base: format!("({} * {})", a.base, b.base),
                            exact: format!("eb_product(&wild, {}, {})", a.exact, b.exact),
                        });
                    }
                };
                let other = self.sum(interior, other, known)?;
                let coefficient =
                    other.coefficient.checked_mul(factor).filter(|c| c.unsigned_abs() < LARGE as u64)?;
                let factor = c_literal(Literal::index(factor));
                let base = match other.base.as_str() {
                    "0" => other.base,
                    base => format!("({base} * {factor})"),
                };
                let exact = match other.exact.as_str() {
                    "0" => other.exact,
                    exact => format!("eb_product(&wild, {exact}, {factor})"),
                };
                Some(Linear { coefficient, base, exact })
            }
            _ => None,
        }
    }

    /// Narrows to where an access is in bounds, or remembers that it must be checked.
    fn prove(
        &mut self,
        interior: &mut Interior,
        narrowed: &mut BTreeSet<String>,
        array: usize,
        index: Indices,
        loops: &[(ValueId, ValueId, ValueId)],
    ) {
        let sums: Option<Vec<Linear>> =
            index.as_slice().iter().map(|v| self.linear(interior, *v, loops)).collect();
        let (Some(sums), true) = (sums, self.corners(interior, loops).is_some()) else {
            interior.unproved.insert(index.as_slice().to_vec());
            return;
        };
        for (k, sum) in sums.iter().enumerate() {
            let extent = format!("d{array}_{k}");
            let used: Vec<_> =
                loops.iter().filter(|l| mentions(&sum.base, &format!("v{}", l.0.index()))).copied().collect();
            for scope in self.corners(interior, &used).unwrap_or_default() {
                let [below, above] = within(sum, &extent);
                let text = if scope.is_empty() {
                    format!("{below} {above}")
                } else {
                    format!("{{ {scope}{below} {above} }}")
                };
                interior.once(narrowed, text);
            }
        }
    }
}

/// Tries a condition with sizes of 1000 and indices of `at`: where it leads in the middle is where most iterations go.
pub(crate) fn far_from_boundaries(program: &Program, v: ValueId, at: u64) -> bool {
    let index = at;
    let mut known: BTreeMap<ValueId, u64> = BTreeMap::new();
    let mut needed = vec![v];
    let mut at = 0;
    while at < needed.len() {
        needed.extend(program.op(needed[at]).operands());
        at += 1;
    }
    needed.sort_unstable();
    needed.dedup();
    for v in needed {
        let bits = match program.op(v) {
            Op::LoopVar => index,
            Op::Scalar(_) | Op::Dim(..) | Op::Get(_) | Op::Load(..) => 1000,
            _ => match evaluate::evaluate(program, v, |o| known.get(&o).copied().unwrap_or(0)) {
                Some(Ok(bits)) => bits,
                _ => 1000,
            },
        };
        known.insert(v, bits);
    }
    known.get(&v).is_some_and(|bits| *bits != 0)
}

/// The arm of a branch that the interior takes, where it is decided.
pub(crate) fn taken<'b>(interior: &Interior, branch: &'b Branch) -> Option<&'b Block> {
    interior.decided.get(&branch.condition).map(|yes| if *yes { &branch.then } else { &branch.otherwise })
}
