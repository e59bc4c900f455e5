//! Conditions that prove, before a loop starts, that its accesses are in bounds.

use ebbtide_ir::{ArrayId, ValueId};

use super::index_expr::IndexExpr;

/// A condition that is asked before a loop starts. It does not hold where something that it computes sets `wild`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Test {
    NotNegative(IndexExpr),
    /// The expression is at most this extent of an array.
    AtMost(IndexExpr, ArrayId, usize),
    /// The expression is no greater than what fits the narrow type.
    Narrow(IndexExpr),
    /// Both are tame.
    Tame(IndexExpr, IndexExpr),
}

impl Test {
    pub fn operands(&self) -> impl Iterator<Item = &IndexExpr> {
        let (a, b) = match self {
            Test::NotNegative(a) | Test::AtMost(a, ..) | Test::Narrow(a) => (a, None),
            Test::Tame(a, b) => (a, Some(b)),
        };
        [a].into_iter().chain(b)
    }

    /// Is everything known that the test is about?
    pub fn is_about(&self, known: &dyn Fn(ValueId) -> bool) -> bool {
        let unknown = |e: &IndexExpr| matches!(e, IndexExpr::Value(v) if !known(*v));
        !self.operands().any(|operand| operand.any(&unknown))
    }
}
