//! How the interval of an interior becomes narrower.

use ebbtide_ir::{Binary, Op, ValueId};

use super::linear::Linear;
use super::{Interior, LARGE, Rows};
use crate::kernel::index_expr::IndexExpr;

/// The values of loop variables at a corner of their ranges.
pub(crate) type Scope = Vec<(ValueId, Corner)>;

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Corner {
    First(IndexExpr),
    /// The value before this one.
    Last(IndexExpr),
}

impl Corner {
    fn contains(&self, part: &IndexExpr) -> bool {
        let (Corner::First(e) | Corner::Last(e)) = self;
        e.contains(part)
    }
}

/// Something that narrows the interval `lo..hi` of the innermost variable `j`, or empties it. Sums are coefficients of `j` with
/// tame bases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Narrowing {
    /// To where a divisor, the same for all `j`, is not zero.
    NotZero(ValueId),
    /// To where the sum is not negative.
    NotNegative((i64, IndexExpr)),
    /// To where the sum is an index below this extent.
    Within(Scope, (i64, IndexExpr), IndexExpr),
    /// To the larger side of where `j` is not this.
    Away(IndexExpr),
    /// To nothing.
    Empty,
    /// To where this multiple of `j` is tame.
    TameMultiple(i64),
    /// To where the expression is tame.
    Tame(Scope, IndexExpr),
}

impl Narrowing {
    fn contains(&self, part: &IndexExpr) -> bool {
        let in_scope = |scope: &Scope| scope.iter().any(|(_, corner)| corner.contains(part));
        match self {
            Narrowing::NotZero(_) | Narrowing::Empty | Narrowing::TameMultiple(_) => false,
            Narrowing::NotNegative((_, e)) | Narrowing::Away(e) => e.contains(part),
            Narrowing::Within(scope, (_, e), extent) => {
                in_scope(scope) || e.contains(part) || extent.contains(part)
            }
            Narrowing::Tame(scope, e) => in_scope(scope) || e.contains(part),
        }
    }
}

impl Interior {
    /// Does a value that is computed before the innermost loop differ between rows, and is it then still a sum?
    pub(super) fn follow(&mut self, v: ValueId, op: &Op) {
        let outer: Vec<bool> = op.operands().map(|o| self.outer.contains(&o)).collect();
        if !outer.contains(&true) {
            return;
        }
        self.outer.insert(v);
        let sum = match op {
            Op::Binary(Binary::Add | Binary::Sub, ..) => true,
            Op::Binary(Binary::Mul, ..) => outer.contains(&false),
            _ => false,
        };
        if !sum {
            self.rows = Rows::Each;
        }
    }

    /// In the interior `v` is what `other` is: the same for the whole row, perhaps.
    pub(super) fn same_as(&mut self, v: ValueId, other: ValueId) {
        if self.varying.uniform(other) {
            self.varying.values.remove(&v);
        }
    }

    pub(super) fn mentions_outer(&self, e: &IndexExpr) -> bool {
        e.any(&|part| matches!(part, IndexExpr::Value(v) if self.outer.contains(v)))
    }

    /// Narrows to where `0 <= sum < extent`.
    pub(super) fn narrow(&mut self, sum: &Linear, extent: IndexExpr) {
        self.once(Narrowing::Within(Scope::new(), sum.for_proofs(), extent));
    }

    /// Narrows to where `sum >= 0`.
    pub(super) fn narrow_from_zero(&mut self, sum: &Linear) {
        self.once(Narrowing::NotNegative(sum.for_proofs()));
    }

    /// Empties the interior where the sum could wrap for some `j`: what it is compared with tells nothing of it then.
    pub(super) fn keep_exact(&mut self, sum: &Linear) {
        if sum.coefficient.unsigned_abs() > 1 {
            self.once(Narrowing::TameMultiple(sum.coefficient));
        }
    }

    /// Everything that narrows the interval, in order; what is needed for sums that nothing else proves comes last, in the
    /// order that `by` gives it.
    pub fn narrowings<K: Ord>(&self, by: impl Fn(&(Scope, IndexExpr)) -> K) -> Vec<Narrowing> {
        let mut all = self.narrowing.clone();
        let mut sums: Vec<&(Scope, IndexExpr)> = self.sums.iter().collect();
        sums.sort_by_key(|sum| by(sum));
        for (scope, sum) in sums {
            let known = matches!(sum, IndexExpr::Number(0))
                || matches!(sum, IndexExpr::Constant(c) if (0..LARGE).contains(c));
            let tame = sum.clone().tamed();
            if !known && !all.iter().any(|narrowing| narrowing.contains(&tame)) {
                all.push(Narrowing::Tame(scope.clone(), tame));
            }
        }
        all
    }

    pub(super) fn once(&mut self, narrowing: Narrowing) {
        if !self.narrowing.contains(&narrowing) {
            self.narrowing.push(narrowing);
        }
    }

    /// Narrows to the larger side of where `sum != 0`.
    pub(super) fn narrow_away(&mut self, sum: &Linear) {
        if self.mentions_outer(&sum.base) {
            self.rows = Rows::Each;
        }
        match sum.coefficient {
            1 => self.once(Narrowing::Away(IndexExpr::negative(sum.tame()))),
            -1 => self.once(Narrowing::Away(sum.tame())),
            _ => self.narrowing.push(Narrowing::Empty),
        }
    }
}
