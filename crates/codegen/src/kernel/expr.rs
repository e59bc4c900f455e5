//! Expressions of values, as trees. Each knows the type in which it computes, so that a printer needs nothing else.

use ebbtide_ir::{ArrayId, Binary, Combine, Compare, Function, Literal, ScalarId, Type, Unary};

use super::index_expr::IndexExpr;
use super::name::{Name, Ty};

/// A value. Integer divisors are known not to be zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Literal(Literal),
    Variable(Name),
    /// A scalar argument.
    Scalar(ScalarId, Type),
    /// An extent of an array.
    Extent(ArrayId, usize),
    /// An index that is the same in all iterations of a row.
    Index(IndexExpr),
    /// `coefficient * variable + base`, which wraps.
    Linear {
        coefficient: i64,
        variable: Name,
        base: IndexExpr,
    },
    Unary(Unary, Ty, Overflow, Box<Expr>),
    Binary(Binary, Ty, Overflow, Box<[Expr; 2]>),
    /// A comparison of two numbers of this type.
    Compare(Compare, Ty, Box<[Expr; 2]>),
    /// `if c { a } else { b }`, both computed.
    Select(Ty, Box<[Expr; 3]>),
    /// `a * b + c`, rounded once.
    Fma(Ty, Box<[Expr; 3]>),
    Cast {
        from: Ty,
        to: Ty,
        overflow: Overflow,
        value: Box<Expr>,
    },
    Math(Function, Ty, Vec<Expr>),
    /// A random number of this type from a seed and a counter.
    Random(Type, Box<[Expr; 2]>),
    /// All of these hold.
    All(Vec<Expr>),
    /// Is the first one, of this type, at least the second and less than the third, in all its lanes?
    Within(Ty, Box<[Expr; 3]>),
    /// The remainder of a number by another one, which is one step away at most: the first is not less than the negative second, and
    /// less than twice that.
    OneStep(Ty, Box<[Expr; 2]>),
    /// The narrow index that is nearest.
    Nearest(Box<Expr>),
    /// One value for all lanes.
    Splat(Ty, Box<Expr>),
    /// The sum of a variable and the number of the lane, times a coefficient, plus a base: as a number of this type for each
    /// lane.
    Ramp {
        ty: Ty,
        coefficient: i64,
        variable: Name,
        base: IndexExpr,
    },
    /// A multiple of the number of the lane, as a number of this type for each lane.
    Multiples {
        ty: Ty,
        coefficient: i64,
    },
}

/// What becomes of an index that does not fit its type (law 4); other numbers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// It wraps, or is proved to fit.
    Wraps,
    /// It is no number, and neither is anything that is computed from it.
    Marked,
}

impl Expr {
    /// A variable of one of the program's values.
    pub fn variable(name: impl Into<Name>) -> Expr {
        Expr::Variable(name.into())
    }

    pub fn truth(holds: bool) -> Expr {
        Expr::Literal(Literal::from_bits(Type::Bool, u64::from(holds)))
    }

    /// The condition that this one does not hold.
    pub fn not(self, ty: Ty) -> Expr {
        Expr::Unary(Unary::Not, ty, Overflow::Wraps, Box::new(self))
    }

    pub fn compare(op: Compare, ty: Ty, a: Expr, b: Expr) -> Expr {
        Expr::Compare(op, ty, Box::new([a, b]))
    }

    pub fn select(ty: Ty, condition: Expr, a: Expr, b: Expr) -> Expr {
        Expr::Select(ty, Box::new([condition, a, b]))
    }

    /// An element combined with a value.
    pub fn combine(how: Combine, ty: Ty, element: Expr, value: Expr) -> Expr {
        let op = match how {
            Combine::Add => Binary::Add,
            Combine::Min => Binary::Min,
            Combine::Max => Binary::Max,
        };
        Expr::Binary(op, ty, Overflow::Wraps, Box::new([element, value]))
    }

    /// The operands, from left to right.
    pub fn operands(&self) -> &[Expr] {
        match self {
            Expr::Literal(_) | Expr::Variable(_) | Expr::Scalar(..) | Expr::Extent(..) => &[],
            Expr::Index(_) | Expr::Linear { .. } | Expr::Ramp { .. } | Expr::Multiples { .. } => &[],
            Expr::Unary(.., a) | Expr::Cast { value: a, .. } | Expr::Nearest(a) | Expr::Splat(_, a) => {
                std::slice::from_ref(&**a)
            }
            Expr::Binary(.., two) | Expr::Compare(.., two) => &two[..],
            Expr::Random(_, two) | Expr::OneStep(_, two) => &two[..],
            Expr::Select(_, three) | Expr::Fma(_, three) | Expr::Within(_, three) => &three[..],
            Expr::Math(.., all) | Expr::All(all) => all,
        }
    }

    /// The operands, to be changed.
    pub fn operands_mut(&mut self) -> &mut [Expr] {
        match self {
            Expr::Literal(_) | Expr::Variable(_) | Expr::Scalar(..) | Expr::Extent(..) => &mut [],
            Expr::Index(_) | Expr::Linear { .. } | Expr::Ramp { .. } | Expr::Multiples { .. } => &mut [],
            Expr::Unary(.., a) | Expr::Cast { value: a, .. } | Expr::Nearest(a) | Expr::Splat(_, a) => {
                std::slice::from_mut(&mut **a)
            }
            Expr::Binary(.., two) | Expr::Compare(.., two) => &mut two[..],
            Expr::Random(_, two) | Expr::OneStep(_, two) => &mut two[..],
            Expr::Select(_, three) | Expr::Fma(_, three) | Expr::Within(_, three) => &mut three[..],
            Expr::Math(.., all) | Expr::All(all) => all,
        }
    }

    /// Visits the expression and all its parts, to change them, operands first. The depth of recursion is that of the
    /// expression.
    pub fn visit_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.operands_mut().iter_mut().for_each(|operand| operand.visit_mut(visit));
        visit(self);
    }
}
