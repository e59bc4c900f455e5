//! The elementary functions and their first and second partial derivatives, as tables: one for scalars and
//! arrays alike. They are written so that nothing on the way overflows or vanishes where the result does not.

use crate::SecondOrder;

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
    Powi(i32),
    Powf(f64),
}

impl Unary {
    pub(crate) fn value(self, x: f64) -> f64 {
        match self {
            Unary::Neg => -x,
            Unary::Plus(c) => x + c,
            Unary::Less(c) => x - c,
            Unary::SubtractFrom(c) => c - x,
            Unary::Times(c) => x * c,
            Unary::Over(c) => x / c,
            Unary::DivideInto(c) => c / x,
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Tan => x.tan(),
            Unary::Exp => x.exp(),
            Unary::Ln => x.ln(),
            Unary::Sqrt => x.sqrt(),
            Unary::Tanh => x.tanh(),
            Unary::Sinh => x.sinh(),
            Unary::Cosh => x.cosh(),
            Unary::Atan => x.atan(),
            Unary::Recip => x.recip(),
            Unary::Abs => x.abs(),
            Unary::Powi(n) => x.powi(n),
            Unary::Powf(p) => x.powf(p),
        }
    }

    /// The derivative, in terms of the argument `x` and the result `y`.
    pub(crate) fn derivative(self, x: f64, y: f64) -> f64 {
        match self {
            Unary::Neg | Unary::SubtractFrom(_) => -1.0,
            Unary::Plus(_) | Unary::Less(_) => 1.0,
            Unary::Times(c) => c,
            Unary::Over(c) => 1.0 / c,
            Unary::DivideInto(_) => -y / x,
            Unary::Sin => x.cos(),
            Unary::Cos => -x.sin(),
            Unary::Tan => 1.0 + y * y,
            Unary::Exp => y,
            Unary::Ln => 1.0 / x,
            Unary::Sqrt => 0.5 / y,
            Unary::Tanh => 1.0 - y * y,
            Unary::Sinh => x.cosh(),
            Unary::Cosh => x.sinh(),
            Unary::Atan => 1.0 / (1.0 + x * x),
            Unary::Recip => -y * y,
            Unary::Abs if x == 0.0 => 0.0,
            Unary::Abs => x.signum(),
            Unary::Powi(0) => 0.0,
            Unary::Powi(n) => f64::from(n) * x.powi(n.saturating_sub(1)),
            Unary::Powf(0.0) => 0.0,
            Unary::Powf(p) => p * x.powf(p - 1.0),
        }
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
}

impl Binary {
    pub(crate) fn value(self, x: f64, y: f64) -> f64 {
        match self {
            Binary::Add => x + y,
            Binary::Sub => x - y,
            Binary::Mul => x * y,
            Binary::Div => x / y,
            Binary::Pow => x.powf(y),
            Binary::Max => x.max(y),
            Binary::Min => x.min(y),
            Binary::Atan2 => x.atan2(y),
            Binary::Hypot => x.hypot(y),
        }
    }

    /// The derivatives along `x` and along `y`.
    pub(crate) fn derivatives(self, x: f64, y: f64) -> [f64; 2] {
        let chosen = |first: bool| if first { [1.0, 0.0] } else { [0.0, 1.0] };
        match self {
            Binary::Add => [1.0, 1.0],
            Binary::Sub => [1.0, -1.0],
            Binary::Mul => [y, x],
            Binary::Div => [1.0 / y, -(x / y) / y],
            Binary::Pow => [zero_wins(y, x.powf(y - 1.0)), zero_wins(x.powf(y), x.ln())],
            Binary::Max => chosen(x >= y || y.is_nan()),
            Binary::Min => chosen(x <= y || y.is_nan()),
            Binary::Atan2 => {
                let (length, [x, y]) = polar(x, y);
                [y / length, -x / length]
            }
            Binary::Hypot => {
                let (length, direction) = polar(x, y);
                if length == 0.0 { [0.0; 2] } else { direction }
            }
        }
    }

    /// The second derivatives: twice along `x`, along both, twice along `y`.
    pub(crate) fn second_derivatives(self, x: f64, y: f64) -> [f64; 3] {
        match self {
            Binary::Add | Binary::Sub | Binary::Max | Binary::Min => [0.0; 3],
            Binary::Mul => [0.0, 1.0, 0.0],
            Binary::Div => [0.0, -1.0 / y / y, 2.0 * (x / y / y / y)],
            Binary::Pow => {
                let (power, log) = (x.powf(y), x.ln());
                let along_both = zero_wins(x.powf(y - 1.0), 1.0 + zero_wins(y, log));
                [zero_wins(y * (y - 1.0), x.powf(y - 2.0)), along_both, zero_wins(power, log * log)]
            }
            Binary::Atan2 => {
                let (length, [x, y]) = polar(x, y);
                let mixed = 2.0 * x * (y / length) / length;
                [-mixed, (x - y) * ((x + y) / length) / length, mixed]
            }
            Binary::Hypot => {
                let (length, [x, y]) = polar(x, y);
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
fn polar(x: f64, y: f64) -> (f64, [f64; 2]) {
    let length = x.hypot(y);
    (length, [x / length, y / length])
}

/// A product in which a factor of zero counts more than an infinite one, as where a power is flat.
fn zero_wins(zero: f64, other: f64) -> f64 {
    if zero == 0.0 { 0.0 } else { zero * other }
}
