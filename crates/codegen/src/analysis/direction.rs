//! How a sum changes with one of its variables. Input: an index as an expression; output: whether it grows or shrinks with the
//! variable, where constants alone say so.

use std::ops::Neg;

use ebbtide_ir::ValueId;

use crate::kernel::index_expr::{Arithmetic, IndexExpr};

/// What an index does where a variable grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Stays,
    Grows,
    Shrinks,
}

impl Neg for Direction {
    type Output = Direction;

    fn neg(self) -> Direction {
        match self {
            Direction::Stays => Direction::Stays,
            Direction::Grows => Direction::Shrinks,
            Direction::Shrinks => Direction::Grows,
        }
    }
}

/// What an index, and each part of it, does where this variable grows; `None` where that depends on more than constants, or parts
/// go against each other. The depth of recursion is that of the expression.
pub(crate) fn direction(e: &IndexExpr, v: ValueId) -> Option<Direction> {
    let both = |a: Direction, b: Direction| match (a, b) {
        (Direction::Stays, other) | (other, Direction::Stays) => Some(other),
        (a, b) => (a == b).then_some(a),
    };
    match e {
        IndexExpr::Value(w) if *w == v => Some(Direction::Grows),
        IndexExpr::Wrapping(op, a, b) | IndexExpr::Checked(op, a, b) | IndexExpr::Marked(op, a, b) => {
            let [of_a, of_b] = [direction(a, v)?, direction(b, v)?];
            match op {
                Arithmetic::Add => both(of_a, of_b),
                Arithmetic::Sub => both(of_a, -of_b),
                Arithmetic::Mul | Arithmetic::Div if of_a == of_b && of_a == Direction::Stays => Some(of_a),
                Arithmetic::Mul => match (constant(a), constant(b)) {
                    (Some(factor), _) => Some(times(factor, of_b)),
                    (_, Some(factor)) => Some(times(factor, of_a)),
                    _ => None,
                },
                Arithmetic::Div => None,
            }
        }
        IndexExpr::Min(a, b) | IndexExpr::Max(a, b) => both(direction(a, v)?, direction(b, v)?),
        IndexExpr::Room(a, b) => both(direction(a, v)?, -direction(b, v)?),
        IndexExpr::Tame(a) => direction(a, v),
        IndexExpr::Negative(a) => Some(-direction(a, v)?),
        IndexExpr::Value(_)
        | IndexExpr::Constant(_)
        | IndexExpr::Number(_)
        | IndexExpr::Factor(_)
        | IndexExpr::Scalar(_)
        | IndexExpr::First(_)
        | IndexExpr::End(_)
        | IndexExpr::Extent(..)
        | IndexExpr::Wrapped(_) => Some(Direction::Stays),
    }
}

fn constant(e: &IndexExpr) -> Option<i64> {
    match e {
        IndexExpr::Constant(n) | IndexExpr::Number(n) | IndexExpr::Factor(n) => Some(*n),
        IndexExpr::Tame(e) => constant(e),
        IndexExpr::Negative(e) => constant(e)?.checked_neg(),
        _ => None,
    }
}

fn times(factor: i64, of: Direction) -> Direction {
    match factor {
        0 => Direction::Stays,
        1.. => of,
        _ => -of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(v: usize) -> IndexExpr {
        IndexExpr::Value(ValueId::from_index(v))
    }

    #[test]
    fn constants_say_how_a_sum_changes() {
        let (i, j) = (ValueId::from_index(1), ValueId::from_index(2));
        let back = IndexExpr::marked(Arithmetic::Sub, IndexExpr::Constant(1), of(2));
        let scaled = IndexExpr::marked(Arithmetic::Mul, of(1), IndexExpr::Constant(8));
        let sum = IndexExpr::marked(Arithmetic::Add, scaled.clone(), back);
        assert_eq!(direction(&sum, i), Some(Direction::Grows));
        assert_eq!(direction(&sum, j), Some(Direction::Shrinks));
        assert_eq!(direction(&sum, ValueId::from_index(3)), Some(Direction::Stays));
        let negative = IndexExpr::negative(IndexExpr::Tame(Box::new(sum)));
        assert_eq!(direction(&negative, j), Some(Direction::Grows));
        // 8 i - i grows, but its parts go against each other.
        let against = IndexExpr::marked(Arithmetic::Sub, scaled, of(1));
        assert_eq!(direction(&against, i), None);
        // Whether a value is negative is not known.
        let product = IndexExpr::marked(Arithmetic::Mul, of(1), of(2));
        assert_eq!(direction(&product, i), None);
    }
}
