//! Expressions of indices, as C.

use std::fmt;

use ebbtide_ir::Literal;

use crate::kernel::bounds_test::Test;
use crate::kernel::index_expr::{Arithmetic, IndexExpr};
use crate::print::c_types::c_literal;

impl Arithmetic {
    fn sign(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Sub => '-',
            Arithmetic::Mul => '*',
            Arithmetic::Div => '/',
        }
    }

    /// The name of the function that sets `wild`.
    fn checked(self) -> &'static str {
        match self {
            Arithmetic::Add => "sum",
            Arithmetic::Sub => "difference",
            Arithmetic::Mul => "product",
            Arithmetic::Div => "quotient",
        }
    }

    /// The name of the function whose result may be no number.
    fn marked(self) -> &'static str {
        match self {
            Arithmetic::Add => "add",
            Arithmetic::Sub => "sub",
            Arithmetic::Mul => "mul",
            Arithmetic::Div => "div",
        }
    }
}

/// Values have the names that they have where no iterations stand side by side: no expression of an analysis speaks of others.
impl fmt::Display for IndexExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexExpr::Value(v) => write!(f, "v{}", v.index()),
            IndexExpr::Constant(c) => f.write_str(&c_literal(Literal::index(*c))),
            IndexExpr::Number(n) => write!(f, "{n}"),
            IndexExpr::Factor(n) => write!(f, "{n}ll"),
            IndexExpr::Scalar(s) => write!(f, "(i64)f->scalars[{}]", s.index()),
            IndexExpr::First(d) => write!(f, "f{d}"),
            IndexExpr::End(d) => write!(f, "f{d} + e{d}"),
            IndexExpr::Extent(array, k) => write!(f, "d{}_{k}", array.index()),
            IndexExpr::Wrapped(v) => write!(f, "w{}", v.index()),
            IndexExpr::Wrapping(op, a, b) => write!(f, "({a} {} {b})", op.sign()),
            IndexExpr::Checked(op, a, b) => write!(f, "eb_{}(&wild, {a}, {b})", op.checked()),
            IndexExpr::Marked(op, a, b) => write!(f, "eb_index_{}({a}, {b})", op.marked()),
            IndexExpr::Min(a, b) => write!(f, "eb_min({a}, {b})"),
            IndexExpr::Max(a, b) => write!(f, "eb_max({a}, {b})"),
            IndexExpr::Tame(a) => write!(f, "eb_tame(&wild, {a})"),
            IndexExpr::Negative(a) => write!(f, "(-{a})"),
            IndexExpr::Room(extent, index) => write!(f, "({extent} - 1 - {index})"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::NotNegative(e) => write!(f, "{e} >= 0"),
            Test::AtMost(e, array, k) => write!(f, "{e} <= d{}_{k}", array.index()),
            Test::Narrow(e) => write!(f, "{e} <= EB_SMALL"),
            Test::Tame(first, end) => write!(f, "eb_exact(&wild, {first}, {end})"),
        }
    }
}
