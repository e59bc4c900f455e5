//! Operators and functions of tracked values, element by element.
//!
//! Operators cannot return errors. If one cannot be recorded (its operands are on different tapes, say), its
//! result is a value whose pullback returns that error. An operation on values that are on no tape gives a
//! value that is on no tape.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::elementary::{Binary, Unary};
use crate::{Differentiable, Error, Tape, Var};

/// A value with the elementary operations: `f64` and, with the feature `ndarray`, arrays of it.
///
/// `+ - * /` work between tracked values, and with plain `f64` on either side. Operands that are given up
/// (`x * y` rather than `&x * &y`) save a little time.
pub trait Elementwise: Apply {}

/// How the elementary operations are recorded.
pub trait Apply: Differentiable {
    fn unary(function: Unary, x: &Var<Self>) -> Var<Self>;

    fn binary(function: Binary, x: &Var<Self>, y: &Var<Self>) -> Var<Self>;

    /// [`unary`](Apply::unary) with an operand that is given up: the result can take over its hold of the tape.
    fn unary_of(function: Unary, x: Var<Self>) -> Var<Self> {
        Self::unary(function, &x)
    }

    /// [`binary`](Apply::binary) with a first operand that is given up.
    fn binary_of(function: Binary, x: Var<Self>, y: &Var<Self>) -> Var<Self> {
        Self::binary(function, &x, y)
    }
}

/// The tape of the first operand that is on one.
pub(crate) fn common_tape<'a, V: Differentiable>(x: &'a Var<V>, y: &'a Var<V>) -> Result<&'a Tape<V>, Error> {
    match x.try_tape() {
        Err(Error::MissingNode) => y.try_tape(),
        other => other,
    }
}

/// What an operator gives that could not record its result.
pub(crate) fn unrecorded<V: Differentiable>(value: impl Into<V::Shared>, error: Error) -> Var<V> {
    match error {
        Error::MissingNode => Var::detached(value),
        error => Var::broken(value.into(), error),
    }
}

/// Forwards an operator from every mix of owned and borrowed operands.
macro_rules! operator {
    ($trait:ident, $method:ident, $function:ident, $by:ident, $from:ident) => {
        impl<V: Elementwise> $trait<&Var<V>> for &Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: &Var<V>) -> Var<V> {
                V::binary(Binary::$function, self, other)
            }
        }
        impl<V: Elementwise> $trait<Var<V>> for &Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: Var<V>) -> Var<V> {
                self.$method(&other)
            }
        }
        impl<V: Elementwise> $trait<&Var<V>> for Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: &Var<V>) -> Var<V> {
                V::binary_of(Binary::$function, self, other)
            }
        }
        impl<V: Elementwise> $trait<Var<V>> for Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: Var<V>) -> Var<V> {
                V::binary_of(Binary::$function, self, &other)
            }
        }
        impl<V: Elementwise> $trait<f64> for &Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: f64) -> Var<V> {
                V::unary(Unary::$by(other), self)
            }
        }
        impl<V: Elementwise> $trait<f64> for Var<V> {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: f64) -> Var<V> {
                V::unary_of(Unary::$by(other), self)
            }
        }
        impl<V: Elementwise> $trait<&Var<V>> for f64 {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: &Var<V>) -> Var<V> {
                V::unary(Unary::$from(self), other)
            }
        }
        impl<V: Elementwise> $trait<Var<V>> for f64 {
            type Output = Var<V>;
            #[inline]
            fn $method(self, other: Var<V>) -> Var<V> {
                V::unary_of(Unary::$from(self), other)
            }
        }
    };
}

operator!(Add, add, Add, Plus, Plus);
operator!(Sub, sub, Sub, Less, SubtractFrom);
operator!(Mul, mul, Mul, Times, Times);
operator!(Div, div, Div, Over, DivideInto);

impl<V: Elementwise> Neg for &Var<V> {
    type Output = Var<V>;
    fn neg(self) -> Var<V> {
        V::unary(Unary::Neg, self)
    }
}

impl<V: Elementwise> Neg for Var<V> {
    type Output = Var<V>;
    fn neg(self) -> Var<V> {
        V::unary_of(Unary::Neg, self)
    }
}

macro_rules! functions_of_one {
    ($($method:ident $function:ident $what:literal;)*) => {
        impl<V: Elementwise> Var<V> {
            $(
                #[doc = $what]
                pub fn $method(&self) -> Var<V> {
                    V::unary(Unary::$function, self)
                }
            )*
        }
    };
}

functions_of_one! {
    sin Sin "The sine.";
    cos Cos "The cosine.";
    tan Tan "The tangent.";
    exp Exp "The exponential.";
    ln Ln "The natural logarithm.";
    sqrt Sqrt "The square root.";
    tanh Tanh "The hyperbolic tangent.";
    sinh Sinh "The hyperbolic sine.";
    cosh Cosh "The hyperbolic cosine.";
    atan Atan "The arc tangent.";
    recip Recip "The reciprocal.";
    abs Abs "The absolute value; its derivative at zero is zero.";
}

impl<V: Elementwise> Var<V> {
    /// An integer power.
    pub fn powi(&self, exponent: i32) -> Var<V> {
        V::unary(Unary::Powi(exponent), self)
    }

    /// A power with a constant exponent.
    pub fn powf(&self, exponent: f64) -> Var<V> {
        V::unary(Unary::Powf(exponent), self)
    }

    /// A power with a tracked exponent.
    pub fn pow(&self, exponent: &Var<V>) -> Var<V> {
        V::binary(Binary::Pow, self, exponent)
    }

    /// The larger of two; of equals, the derivative is that of the first.
    pub fn max(&self, other: &Var<V>) -> Var<V> {
        V::binary(Binary::Max, self, other)
    }

    /// The smaller of two; of equals, the derivative is that of the first.
    pub fn min(&self, other: &Var<V>) -> Var<V> {
        V::binary(Binary::Min, self, other)
    }

    /// The angle of the point (`other`, `self`).
    pub fn atan2(&self, other: &Var<V>) -> Var<V> {
        V::binary(Binary::Atan2, self, other)
    }

    /// The length of the vector of two.
    pub fn hypot(&self, other: &Var<V>) -> Var<V> {
        V::binary(Binary::Hypot, self, other)
    }
}
