//! How the interval of an interior becomes narrower.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ebbtide_ir::{Binary, Op, ValueId};

use super::linear::{Linear, from_zero, mentions, tamed, within};
use super::{Interior, LARGE, Rows};

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

    pub(super) fn mentions_outer(&self, text: &str) -> bool {
        self.outer.iter().any(|v| mentions(text, &format!("v{}", v.index())))
    }

    /// Narrows to where `0 <= sum < extent`.
    pub(super) fn narrow(&mut self, narrowed: &mut BTreeSet<String>, sum: &Linear, extent: &str) {
        self.once(narrowed, within(sum, extent).join(" "));
    }

    /// Narrows to where `sum >= 0`.
    pub(super) fn narrow_from_zero(&mut self, narrowed: &mut BTreeSet<String>, sum: &Linear) {
        self.once(narrowed, from_zero(sum));
    }

    /// Empties the interior where the sum could wrap for some `j`: what it is compared with tells nothing of it then.
    pub(super) fn keep_exact(&mut self, narrowed: &mut BTreeSet<String>, sum: &Linear) {
        if sum.coefficient.unsigned_abs() > 1 {
            let c = sum.coefficient;
            let text = ["jf", "jt"].map(|j| format!("eb_tame(&wild, eb_product(&wild, INT64_C({c}), {j}));"));
            self.once(narrowed, text.join(" "));
        }
    }

    /// Empties the interior where a sum that no access proves is not tame.
    pub(super) fn tame_sums(&mut self) {
        for (scope, sum) in std::mem::take(&mut self.sums) {
            let small = sum.strip_prefix("INT64_C(").and_then(|c| c.strip_suffix(')')?.parse::<i64>().ok());
            let known = sum == "0" || small.is_some_and(|c| c < LARGE);
            let sum = tamed(&sum);
            if !known && !self.narrowing.contains(&sum) {
                let open = if scope.is_empty() { "" } else { "{ " };
                let close = if scope.is_empty() { "" } else { " }" };
                let _ = writeln!(self.narrowing, "{open}{scope}{sum};{close}");
            }
        }
    }

    pub(super) fn once(&mut self, narrowed: &mut BTreeSet<String>, text: String) {
        if narrowed.insert(text.clone()) {
            let _ = writeln!(self.narrowing, "{text}");
        }
    }

    /// Narrows to the larger side of where `sum != 0`.
    pub(super) fn narrow_away(&mut self, narrowed: &mut BTreeSet<String>, sum: &Linear) {
        if self.mentions_outer(&sum.base) {
            self.rows = Rows::Each;
        }
        let base = &sum.tame();
        let zero = match sum.coefficient {
            1 => format!("-{base}"),
            -1 => base.clone(),
            _ => {
                let _ = writeln!(self.narrowing, "hi = lo;");
                return;
            }
        };
        self.once(narrowed, format!("eb_avoid(&lo, &hi, {zero});"));
    }
}
