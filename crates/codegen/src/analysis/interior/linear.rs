//! Sums `coefficient · j + base`.

use crate::kernel::expr::Expr;

/// `coefficient · j + base`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub coefficient: i64,
    /// The base as the body computes it: it wraps.
    pub base: Expr,
    /// The base as proofs compute it: what overflows sets `wild`, and the interior is empty then.
    pub exact: Expr,
}

impl Linear {
    pub fn new(coefficient: i64, base: Expr) -> Linear {
        Linear { coefficient, exact: base.clone(), base }
    }

    /// A value that is the same for all `j`; where it is no number, the interior is empty.
    pub fn uniform(value: Expr, may_overflow: bool) -> Linear {
        let exact = if may_overflow { value.clone().tamed() } else { value.clone() };
        Linear { coefficient: 0, base: value, exact }
    }

    /// The base for proofs, which is then far from the ends of its type.
    pub fn tame(&self) -> Expr {
        match &self.exact {
            Expr::Number(0) => Expr::Number(0),
            exact => exact.clone().tamed(),
        }
    }

    /// The coefficient, and the base for proofs.
    pub fn for_proofs(&self) -> (i64, Expr) {
        (self.coefficient, self.tame())
    }
}
