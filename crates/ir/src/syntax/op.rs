//! Operations: how a value is computed from others, and how an element is combined with one.

use super::function::Function;
use super::ids::{ArrayId, Indices, LocalId, ScalarId, ValueId};
use super::types::Literal;

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`; wrapping for integers.
    Neg,
    /// `!x`: logical for `bool`, bitwise for integers.
    Not,
    /// `x.abs()`; wrapping for integers.
    Abs,
    /// Square root, correctly rounded.
    Sqrt,
    /// Largest integral value not above.
    Floor,
    /// Smallest integral value not below.
    Ceil,
    /// Nearest integral value, halves away from zero.
    Round,
    /// Integral part.
    Trunc,
    /// The length of a vector, of the square of that length: the square root, but its slope at zero is zero (law 13).
    Norm,
}

/// An operation on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; truncating for integers, an error for a zero divisor.
    Div,
    /// `a % b`; the sign of the dividend; an error for a zero divisor.
    Rem,
    /// The remainder that is never negative (`rem_euclid`), integers alone; an error for a zero divisor.
    RemEuclid,
    /// The smaller; of a number and NaN the number; of zeros the negative one.
    Min,
    /// The larger; of a number and NaN the number; of zeros the positive one.
    Max,
    /// `a & b`, integers and `bool`.
    And,
    /// `a | b`, integers and `bool`.
    Or,
    /// `a ^ b`, integers and `bool`.
    Xor,
    /// `a << b`, the count taken modulo the width.
    Shl,
    /// `a >> b`, the count taken modulo the width; arithmetic for signed types.
    Shr,
}

/// A comparison; gives `bool`. Every comparison with NaN is false but `!=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant.
    Literal(Literal),
    /// A scalar parameter.
    Scalar(ScalarId),
    /// The extent of an array in one dimension.
    Dim(ArrayId, u8),
    /// The variable of the loop that introduces this value.
    LoopVar,
    /// What a local variable holds now.
    Get(LocalId),
    /// An operation on one value.
    Unary(Unary, ValueId),
    /// An operation on two values.
    Binary(Binary, ValueId, ValueId),
    /// A comparison.
    Compare(Compare, ValueId, ValueId),
    /// `if c { a } else { b }`, both computed.
    Select(ValueId, ValueId, ValueId),
    /// `a * b + c`, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// Conversion to the value's type: Rust's `as`.
    Cast(ValueId),
    /// An elementary function of one or two arguments (a second one that is not used repeats the first).
    Math(Function, ValueId, ValueId),
    /// A uniform random number in [0, 1) from a seed and a counter, both `i64`.
    Rand(ValueId, ValueId),
    /// An element of an array, as it is now.
    Load(ArrayId, Indices),
}

impl Op {
    /// The values that this one is computed from.
    pub fn operands(&self) -> impl Iterator<Item = ValueId> {
        let mut list = [None; Indices::MAX_RANK];
        match *self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => {}
            Op::Unary(_, a) | Op::Cast(a) => list[0] = Some(a),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Rand(a, b) => {
                (list[0], list[1]) = (Some(a), Some(b))
            }
            Op::Math(f, a, b) => {
                list[0] = Some(a);
                list[1] = (f.arity() == 2).then_some(b);
            }
            Op::Select(a, b, c) | Op::Fma(a, b, c) => {
                (list[0], list[1], list[2]) = (Some(a), Some(b), Some(c))
            }
            Op::Load(_, index) => index.as_slice().iter().zip(&mut list).for_each(|(v, l)| *l = Some(*v)),
        }
        list.into_iter().flatten()
    }

    /// The same operation with each operand replaced.
    pub fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Op {
        match self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => self,
            Op::Unary(op, a) => Op::Unary(op, f(a)),
            Op::Cast(a) => Op::Cast(f(a)),
            Op::Binary(op, a, b) => Op::Binary(op, f(a), f(b)),
            Op::Compare(op, a, b) => Op::Compare(op, f(a), f(b)),
            Op::Rand(a, b) => Op::Rand(f(a), f(b)),
            Op::Math(op, a, b) => Op::Math(op, f(a), f(b)),
            Op::Select(a, b, c) => Op::Select(f(a), f(b), f(c)),
            Op::Fma(a, b, c) => Op::Fma(f(a), f(b), f(c)),
            Op::Load(array, index) => Op::Load(array, index.map(f)),
        }
    }

    /// Does the operation give the same result wherever it stands? (Loads and local variables do not.)
    pub fn is_pure(&self) -> bool {
        !matches!(self, Op::Load(..) | Op::Get(_))
    }
}

/// How an element is combined with a value in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// `a[i] += x`.
    Add,
    /// `a[i].min_assign(x)`.
    Min,
    /// `a[i].max_assign(x)`.
    Max,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_of_the_highest_rank_has_all_its_indices_as_operands() {
        let index: Vec<ValueId> = (0..Indices::MAX_RANK).map(ValueId::from_index).collect();
        let load = Indices::new(&index).map(|at| Op::Load(ArrayId::from_index(0), at));
        assert_eq!(load.map(|load| load.operands().collect()), Some(index));
    }
}
