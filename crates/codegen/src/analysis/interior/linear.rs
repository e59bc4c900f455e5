//! Sums `coefficient · j + base`.

use crate::kernel::index_expr::IndexExpr;

/// `coefficient · j + base`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub coefficient: i64,
    /// The base as the body computes it: it wraps.
    pub base: IndexExpr,
    /// The base as proofs compute it: what overflows sets `wild`, and the interior is empty then.
    pub exact: IndexExpr,
}

impl Linear {
    pub fn new(coefficient: i64, base: IndexExpr) -> Linear {
        Linear { coefficient, exact: base.clone(), base }
    }

    /// A value that is the same for all `j`; where it is no number, the interior is empty.
    pub fn uniform(value: IndexExpr, may_overflow: bool) -> Linear {
        let exact = if may_overflow { value.clone().tamed() } else { value.clone() };
        Linear { coefficient: 0, base: value, exact }
    }

    /// The base for proofs, which is then far from the ends of its type.
    pub fn tame(&self) -> IndexExpr {
        match &self.exact {
            IndexExpr::Number(0) => IndexExpr::Number(0),
            exact => exact.clone().tamed(),
        }
    }

    /// The coefficient, and the base for proofs.
    pub fn for_proofs(&self) -> (i64, IndexExpr) {
        (self.coefficient, self.tame())
    }
}
