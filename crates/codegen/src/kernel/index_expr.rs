//! Expressions of indices, as trees.
//!
//! Three kinds of arithmetic differ in what happens where a result does not fit. *Wrapping* arithmetic is the machine's.
//! *Checked* arithmetic sets a flag, `wild`, and then proves nothing. *Marked* arithmetic is that of the language (law 4): its
//! result is no number, and neither is anything that is computed from it.

use ebbtide_ir::{ArrayId, Literal, Op, Program, ScalarId, ValueId};

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IndexExpr {
    /// A value of the program that is no constant.
    Value(ValueId),
    /// A constant of the program.
    Constant(i64),
    /// A small number that an analysis brings.
    Number(i64),
    /// A factor that an analysis brings.
    Factor(i64),
    /// A scalar argument.
    Scalar(ScalarId),
    /// The first value of a range of the parallel loop.
    First(usize),
    /// What comes after the last value of that range.
    End(usize),
    /// An extent of an array.
    Extent(ArrayId, usize),
    /// A remainder without the multiple of the innermost variable in it: see [`crate::analysis::interior`].
    Wrapped(ValueId),
    /// Arithmetic that wraps.
    Wrapping(Arithmetic, Box<IndexExpr>, Box<IndexExpr>),
    /// Arithmetic that sets `wild` where it overflows.
    Checked(Arithmetic, Box<IndexExpr>, Box<IndexExpr>),
    /// Arithmetic whose result is no number where it overflows.
    Marked(Arithmetic, Box<IndexExpr>, Box<IndexExpr>),
    /// The smaller one.
    Min(Box<IndexExpr>, Box<IndexExpr>),
    /// The larger one.
    Max(Box<IndexExpr>, Box<IndexExpr>),
    /// The operand, which sets `wild` where it is no number or near the ends of its type.
    Tame(Box<IndexExpr>),
    /// The negative.
    Negative(Box<IndexExpr>),
    /// How far an index, the second operand, is below the last one under an extent, the first.
    Room(Box<IndexExpr>, Box<IndexExpr>),
}

/// An operation on two indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

impl IndexExpr {
    /// A value of the program.
    pub fn value(program: &Program, v: ValueId) -> IndexExpr {
        match program.op(v) {
            Op::Literal(literal) => {
                IndexExpr::Constant(Literal::to_i64(*literal).unwrap_or(literal.bits() as i64))
            }
            _ => IndexExpr::Value(v),
        }
    }

    pub fn wrapping(op: Arithmetic, a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Wrapping(op, Box::new(a), Box::new(b))
    }

    pub fn checked(op: Arithmetic, a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Checked(op, Box::new(a), Box::new(b))
    }

    pub fn marked(op: Arithmetic, a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Marked(op, Box::new(a), Box::new(b))
    }

    pub fn min(a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Min(Box::new(a), Box::new(b))
    }

    pub fn max(a: IndexExpr, b: IndexExpr) -> IndexExpr {
        IndexExpr::Max(Box::new(a), Box::new(b))
    }

    pub fn negative(a: IndexExpr) -> IndexExpr {
        IndexExpr::Negative(Box::new(a))
    }

    pub fn room(extent: IndexExpr, index: IndexExpr) -> IndexExpr {
        IndexExpr::Room(Box::new(extent), Box::new(index))
    }

    /// The expression, which sets `wild` where it is not tame.
    pub fn tamed(self) -> IndexExpr {
        match self {
            IndexExpr::Tame(_) => self,
            other => IndexExpr::Tame(Box::new(other)),
        }
    }

    /// Does the condition hold for the expression or a part of it? The depth of recursion is that of the expression.
    pub fn any(&self, holds: &dyn Fn(&IndexExpr) -> bool) -> bool {
        let inner = match self {
            IndexExpr::Wrapping(_, a, b)
            | IndexExpr::Checked(_, a, b)
            | IndexExpr::Marked(_, a, b)
            | IndexExpr::Min(a, b)
            | IndexExpr::Max(a, b)
            | IndexExpr::Room(a, b) => a.any(holds) || b.any(holds),
            IndexExpr::Tame(a) | IndexExpr::Negative(a) => a.any(holds),
            _ => false,
        };
        inner || holds(self)
    }

    /// Is this value in the expression?
    pub fn mentions(&self, v: ValueId) -> bool {
        self.any(&|e| *e == IndexExpr::Value(v))
    }

    /// Does it grow or fall with this value, where all others stay what they are? The depth of recursion is that of the expression.
    pub fn is_monotone(&self, v: ValueId) -> bool {
        match self {
            IndexExpr::Wrapping(op, a, b) | IndexExpr::Checked(op, a, b) | IndexExpr::Marked(op, a, b) => {
                let once =
                    matches!(op, Arithmetic::Add | Arithmetic::Sub) || !a.mentions(v) || !b.mentions(v);
                once && a.is_monotone(v) && b.is_monotone(v)
            }
            IndexExpr::Tame(a) | IndexExpr::Negative(a) => a.is_monotone(v),
            IndexExpr::Min(a, b) | IndexExpr::Max(a, b) | IndexExpr::Room(a, b) => {
                a.is_monotone(v) && b.is_monotone(v)
            }
            _ => true,
        }
    }

    /// By how much it grows with this value; none where that is not the same everywhere. The depth of recursion is that of the
    /// expression.
    pub fn growth(&self, v: ValueId) -> Option<i64> {
        let number = |e: &IndexExpr| match e {
            IndexExpr::Constant(n) | IndexExpr::Number(n) | IndexExpr::Factor(n) => Some(*n),
            _ => None,
        };
        match self {
            IndexExpr::Value(other) => Some(i64::from(*other == v)),
            IndexExpr::Tame(a) => a.growth(v),
            IndexExpr::Negative(a) => a.growth(v)?.checked_neg(),
            IndexExpr::Wrapping(op, a, b) | IndexExpr::Checked(op, a, b) => {
                match (op, a.growth(v)?, b.growth(v)?) {
                    (_, 0, 0) => Some(0),
                    (Arithmetic::Add, a, b) => a.checked_add(b),
                    (Arithmetic::Sub, a, b) => a.checked_sub(b),
                    (Arithmetic::Mul, growth, 0) => growth.checked_mul(number(b)?),
                    (Arithmetic::Mul, 0, growth) => growth.checked_mul(number(a)?),
                    _ => None,
                }
            }
            other => (!other.mentions(v)).then_some(0),
        }
    }

    /// Is this expression a part of it?
    pub fn contains(&self, part: &IndexExpr) -> bool {
        self.any(&|e| match (e, part) {
            // The end of a range is computed from where it begins.
            (IndexExpr::End(d), IndexExpr::First(first)) => d == first,
            _ => e == part,
        })
    }
}
