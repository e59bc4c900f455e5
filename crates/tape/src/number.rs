//! What the tables of [`elementary`](crate::elementary) compute with: plain floats, tracked values, and values with
//! tangents.

use crate::elementary::{Binary, Unary};
use crate::{Elementwise, HigherOrder, Inline, Var};

/// A number that the elementary functions can be applied to.
pub trait Number: Clone {
    fn unary(&self, function: Unary) -> Self;

    fn binary(&self, function: Binary, other: &Self) -> Self;

    /// [`unary`](Number::unary) of an operand that is given up.
    #[inline]
    fn unary_of(self, function: Unary) -> Self {
        self.unary(function)
    }

    /// [`binary`](Number::binary) with a first operand that is given up.
    #[inline]
    fn binary_of(self, function: Binary, other: &Self) -> Self {
        self.binary(function, other)
    }

    #[inline]
    fn times(&self, other: &Self) -> Self {
        self.binary(Binary::Mul, other)
    }

    #[inline]
    fn over(&self, other: &Self) -> Self {
        self.binary(Binary::Div, other)
    }

    #[inline]
    fn plus(&self, constant: f64) -> Self {
        self.unary(Unary::Plus(constant))
    }

    #[inline]
    fn scaled(&self, constant: f64) -> Self {
        self.unary(Unary::Times(constant))
    }

    #[inline]
    fn zero_wins(&self, other: &Self) -> Self {
        self.binary(Binary::ZeroWins, other)
    }
}

/// A floating-point number: `f32` or `f64`.
pub trait Float: Number + Copy + PartialEq + Elementwise + HigherOrder<Shared = Inline<Self>> {
    /// The nearest number of this type.
    fn of(x: f64) -> Self;

    /// The same number in `f64`.
    fn wide(self) -> f64;

    fn sum(self, other: Self) -> Self;
}

macro_rules! float {
    ($float:ident) => {
        impl Number for $float {
            #[inline]
            fn unary(&self, function: Unary) -> $float {
                let x = *self;
                match function {
                    Unary::Neg => -x,
                    Unary::Plus(c) => x + c as $float,
                    Unary::Less(c) => x - c as $float,
                    Unary::SubtractFrom(c) => c as $float - x,
                    Unary::Times(c) => x * c as $float,
                    Unary::Over(c) => x / c as $float,
                    Unary::DivideInto(c) => c as $float / x,
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
                    Unary::Sign if x == 0.0 => 0.0,
                    Unary::Sign => x.signum(),
                    Unary::Finite if x.is_finite() => x,
                    Unary::Finite => 0.0,
                    Unary::Powi(n) => x.powi(n),
                    Unary::Powf(p) => x.powf(p as $float),
                }
            }

            #[inline]
            fn binary(&self, function: Binary, other: &$float) -> $float {
                let (x, y) = (*self, *other);
                match function {
                    Binary::Add => x + y,
                    Binary::Sub => x - y,
                    Binary::Mul => x * y,
                    Binary::Div => x / y,
                    Binary::Pow => x.powf(y),
                    Binary::Max => x.max(y),
                    Binary::Min => x.min(y),
                    Binary::Atan2 => x.atan2(y),
                    Binary::Hypot => x.hypot(y),
                    Binary::IsMax => $float::from(u8::from(x >= y || y.is_nan())),
                    Binary::IsMin => $float::from(u8::from(x <= y || y.is_nan())),
                    Binary::UnlessZero | Binary::ZeroWins if x == 0.0 => 0.0,
                    Binary::UnlessZero => y,
                    Binary::ZeroWins => x * y,
                }
            }
        }

        impl HigherOrder for $float {
            fn tracked_sum(x: &Var<$float>, y: &Var<$float>) -> Var<$float> {
                x + y
            }
        }

        impl Float for $float {
            fn of(x: f64) -> $float {
                x as $float
            }

            fn wide(self) -> f64 {
                f64::from(self)
            }

            fn sum(self, other: $float) -> $float {
                self + other
            }
        }
    };
}

float!(f32);
float!(f64);
