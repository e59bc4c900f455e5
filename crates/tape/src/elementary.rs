//! The elementary functions and their first and second partial derivatives, as tables: one for scalars, arrays and
//! tracked values alike. They are written so that nothing on the way overflows or vanishes where the result does not.

use crate::SecondOrder;
use crate::number::Number;

/// A function of one argument, constants included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    Neg,
    Plus(f64),
    Less(f64),
    SubtractFrom(f64),
    Times(f64),
    Over(f64),
    DivideInto(f64),
    Sin,
    Cos,
    Tan,
    Exp,
    Ln,
    Sqrt,
    Tanh,
    Sinh,
    Cosh,
    Atan,
    Recip,
    Abs,
    /// −1, 0 or 1: the slope of `Abs`.
    Sign,
    /// The argument where it is finite, else zero.
    Finite,
    Powi(i32),
    Powf(f64),
}

/// A derivative: a number that depends on the point, or one that does not.
pub(crate) enum Slope<N> {
    Fixed(f64),
    At(N),
}

impl<N: Number> Slope<N> {
    /// The derivative times a direction.
    #[inline]
    pub(crate) fn times(self, direction: &N) -> N {
        match self {
            Slope::Fixed(slope) => direction.scaled(slope),
            Slope::At(slope) => direction.times(&slope),
        }
    }

    /// As [`times`](Slope::times), or nothing where the derivative is zero at every point.
    pub(crate) fn times_nonzero(self, direction: &N) -> Option<N> {
        match self {
            Slope::Fixed(0.0) => None,
            slope => Some(slope.times(direction)),
        }
    }
}

impl Unary {
    /// The derivative, in terms of the argument `x` and the result `y`.
    #[inline]
    pub(crate) fn derivative<N: Number>(self, x: &N, y: &N) -> Slope<N> {
        Slope::At(match self {
            Unary::Neg | Unary::SubtractFrom(_) => return Slope::Fixed(-1.0),
            Unary::Plus(_) | Unary::Less(_) | Unary::Finite => return Slope::Fixed(1.0),
            Unary::Times(c) => return Slope::Fixed(c),
            Unary::Over(c) => return Slope::Fixed(1.0 / c),
            Unary::Sign | Unary::Powi(0) | Unary::Powf(0.0) => return Slope::Fixed(0.0),
            Unary::DivideInto(_) => y.unary(Unary::Neg).over(x),
            Unary::Sin => x.unary(Unary::Cos),
            Unary::Cos => x.unary(Unary::Sin).unary(Unary::Neg),
            Unary::Tan => y.times(y).plus(1.0),
            Unary::Exp => y.clone(),
            Unary::Ln => x.unary(Unary::Recip),
            Unary::Sqrt => y.unary(Unary::DivideInto(0.5)),
            Unary::Tanh => y.times(y).unary(Unary::SubtractFrom(1.0)),
            Unary::Sinh => x.unary(Unary::Cosh),
            Unary::Cosh => x.unary(Unary::Sinh),
            Unary::Atan => x.times(x).plus(1.0).unary(Unary::Recip),
            Unary::Recip => y.unary(Unary::Neg).times(y),
            Unary::Abs => x.unary(Unary::Sign),
            Unary::Powi(n) => x.unary(Unary::Powi(n.saturating_sub(1))).scaled(f64::from(n)),
            Unary::Powf(p) => x.unary(Unary::Powf(p - 1.0)).scaled(p),
        })
    }

    /// The second derivative, in terms of the argument `x` and the result `y`.
    pub(crate) fn second_derivative(self, x: f64, y: f64) -> f64 {
        match self {
            Unary::Neg
            | Unary::Plus(_)
            | Unary::Less(_)
            | Unary::SubtractFrom(_)
            | Unary::Times(_)
            | Unary::Over(_)
            | Unary::Sign
            | Unary::Finite
            | Unary::Abs => 0.0,
            Unary::DivideInto(_) => 2.0 * (y / x / x),
            Unary::Sin | Unary::Cos => -y,
            Unary::Tan => 2.0 * y * (1.0 + y * y),
            Unary::Exp | Unary::Sinh | Unary::Cosh => y,
            Unary::Ln => -1.0 / (x * x),
            Unary::Sqrt => -0.25 / y / x,
            Unary::Tanh => -2.0 * y * (1.0 - y * y),
            Unary::Atan => {
                let slope = 1.0 / (1.0 + x * x);
                -2.0 * x * slope * slope
            }
            Unary::Recip => 2.0 * y * y * y,
            Unary::Powi(0 | 1) => 0.0,
            Unary::Powi(n) => f64::from(n) * (f64::from(n) - 1.0) * x.powi(n.saturating_sub(2)),
            Unary::Powf(0.0 | 1.0) => 0.0,
            Unary::Powf(p) => p * (p - 1.0) * x.powf(p - 2.0),
        }
    }

    pub(crate) fn second_order(self) -> SecondOrder {
        match self {
            Unary::Neg
            | Unary::Plus(_)
            | Unary::Less(_)
            | Unary::SubtractFrom(_)
            | Unary::Times(_)
            | Unary::Over(_) => SecondOrder::Linear,
            _ => SecondOrder::Smooth,
        }
    }
}

/// A function of two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Max,
    Min,
    Atan2,
    Hypot,
    /// One where `Max` is its first argument, else zero: the slope of `Max`.
    IsMax,
    /// One where `Min` is its first argument, else zero.
    IsMin,
    /// The second argument, or zero where the first is zero.
    UnlessZero,
    /// A product in which a factor of zero counts more than an infinite one, as where a power is flat.
    ZeroWins,
}

impl Binary {
    /// The derivatives along `x` and along `y`.
    #[inline]
    pub(crate) fn derivatives<N: Number>(self, x: &N, y: &N) -> [Slope<N>; 2] {
        use Slope::{At, Fixed};
        match self {
            Binary::Add => [Fixed(1.0), Fixed(1.0)],
            Binary::Sub => [Fixed(1.0), Fixed(-1.0)],
            Binary::Mul => [At(y.clone()), At(x.clone())],
            Binary::Div => {
                let along_y = x.over(y).unary(Unary::Neg).over(y);
                [At(y.unary(Unary::Recip)), At(along_y)]
            }
            Binary::Pow => {
                let along_x = y.zero_wins(&x.binary(Binary::Pow, &y.plus(-1.0)));
                [At(along_x), At(x.binary(Binary::Pow, y).zero_wins(&x.unary(Unary::Ln)))]
            }
            Binary::Max | Binary::Min => {
                let first = x.binary(if self == Binary::Max { Binary::IsMax } else { Binary::IsMin }, y);
                let second = first.unary(Unary::SubtractFrom(1.0));
                [At(first), At(second)]
            }
            Binary::Atan2 => {
                let (length, [x, y]) = polar(x, y);
                [At(y.over(&length)), At(x.unary(Unary::Neg).over(&length))]
            }
            Binary::Hypot => {
                let (length, direction) = polar(x, y);
                direction.map(|slope| At(length.binary(Binary::UnlessZero, &slope)))
            }
            Binary::IsMax | Binary::IsMin => [Fixed(0.0), Fixed(0.0)],
            Binary::UnlessZero => [Fixed(0.0), At(x.unary(Unary::Sign).times(&x.unary(Unary::Sign)))],
            Binary::ZeroWins => [At(y.unary(Unary::Finite)), At(x.clone())],
        }
    }

    /// The second derivatives: twice along `x`, along both, twice along `y`.
    pub(crate) fn second_derivatives(self, x: f64, y: f64) -> [f64; 3] {
        let zero_wins = |zero: f64, other: f64| zero.zero_wins(&other);
        match self {
            Binary::Add
            | Binary::Sub
            | Binary::Max
            | Binary::Min
            | Binary::IsMax
            | Binary::IsMin
            | Binary::UnlessZero => [0.0; 3],
            Binary::Mul | Binary::ZeroWins => [0.0, 1.0, 0.0],
            Binary::Div => [0.0, -1.0 / y / y, 2.0 * (x / y / y / y)],
            Binary::Pow => {
                let (power, log) = (x.powf(y), x.ln());
                let along_both = zero_wins(x.powf(y - 1.0), 1.0 + zero_wins(y, log));
                [zero_wins(y * (y - 1.0), x.powf(y - 2.0)), along_both, zero_wins(power, log * log)]
            }
            Binary::Atan2 => {
                let (length, [x, y]) = polar(&x, &y);
                let mixed = 2.0 * x * (y / length) / length;
                [-mixed, (x - y) * ((x + y) / length) / length, mixed]
            }
            Binary::Hypot => {
                let (length, [x, y]) = polar(&x, &y);
                let bend = [y * (y / length), -x * (y / length), x * (x / length)];
                if length == 0.0 { [0.0; 3] } else { bend }
            }
        }
    }

    pub(crate) fn second_order(self) -> SecondOrder {
        match self {
            Binary::Add | Binary::Sub => SecondOrder::Linear,
            _ => SecondOrder::Smooth,
        }
    }
}

/// The length of (x, y) and its direction. Formulas in these do not overflow where a square of the length would.
fn polar<N: Number>(x: &N, y: &N) -> (N, [N; 2]) {
    let length = x.binary(Binary::Hypot, y);
    let direction = [x.over(&length), y.over(&length)];
    (length, direction)
}
