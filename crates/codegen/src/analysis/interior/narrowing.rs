//! How the interval of an interior becomes narrower.

use std::collections::BTreeSet;

use ebbtide_ir::{Binary, Op, ValueId};

use super::linear::Linear;
use super::{Interior, LARGE};
use crate::kernel::index_expr::IndexExpr;
use crate::kernel::interval::{Interval, Narrowing, Ranges, Rows, Scope};

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
        self.once(Narrowing::Within(Scope::new(), sum.for_proofs(), extent, Ranges::new()));
    }

    /// Narrows to where `sum >= 0`.
    pub(super) fn narrow_from_zero(&mut self, sum: &Linear) {
        self.once(Narrowing::NotNegative(sum.for_proofs()));
    }

    /// Empties the interior where a sum with this coefficient could wrap for some `j`: what it is compared with tells nothing of it then.
    pub(super) fn keep_exact(&mut self, coefficient: i64) {
        if coefficient.unsigned_abs() > 1 {
            self.once(Narrowing::TameMultiple(coefficient));
        }
    }

    /// The interval as data.
    pub fn interval(&self) -> Interval {
        let narrowings = self.with_sums(self.narrowing.clone(), &BTreeSet::new());
        Interval { before: self.before.clone(), narrowings, rows: self.rows }
    }

    /// What narrows the interval where a proof keeps all accesses in bounds, and makes these values numbers.
    pub fn narrowings_where_proved(&self, exact: &BTreeSet<ValueId>) -> Vec<Narrowing> {
        let narrowings = self.narrowing.iter().filter(|narrowing| !self.of_accesses.contains(narrowing));
        self.with_sums(narrowings.cloned().collect(), exact)
    }

    /// Narrowings, and behind them what is needed for sums that nothing else proves: none of sums that are these values.
    fn with_sums(&self, mut narrowings: Vec<Narrowing>, exact: &BTreeSet<ValueId>) -> Vec<Narrowing> {
        for ((scope, sum), values) in &self.sums {
            let known = matches!(sum, IndexExpr::Number(0))
                || matches!(sum, IndexExpr::Constant(c) if (0..LARGE).contains(c))
                || values.is_subset(exact);
            let tame = sum.clone().tamed();
            // The same sum at another corner of loops inside is another number. Indices are asked for at all corners.
            let asked = |narrowing: &Narrowing| match narrowing {
                Narrowing::Tame(other, _) if !scope.is_empty() && other != scope => false,
                narrowing => narrowing.contains(&tame),
            };
            if !known && !narrowings.iter().any(asked) {
                narrowings.push(Narrowing::Tame(scope.clone(), tame));
            }
        }
        narrowings
    }

    /// Narrows to where an access is in bounds.
    pub(super) fn keep_in_bounds(&mut self, narrowing: Narrowing) {
        if !self.narrowing.contains(&narrowing) {
            self.of_accesses.insert(narrowing.clone());
            self.narrowing.push(narrowing);
        }
    }

    pub(super) fn once(&mut self, narrowing: Narrowing) {
        self.of_accesses.remove(&narrowing);
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
