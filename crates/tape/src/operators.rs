//! Operators and functions of tracked values, element by element.
//!
//! Operators cannot return errors. If one cannot be recorded (its operands are on different tapes, say), its
//! result is a value whose pullback returns that error. An operation on values that are on no tape gives a
//! value that is on no tape.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::elementary::{Binary, Unary};
use crate::number::Number;
use crate::{Differentiable, Dual, Error, Tape, Var};

/// A value with the elementary operations: `f32`, `f64` and, with the feature `ndarray`, arrays of them.
///
/// `+ - * /` work between tracked values ([`Var`]), between values with tangents ([`Dual`]), and of either with plain
/// numbers of the same precision on either side. Operands that are given up (`x * y` rather than `&x * &y`) save a
/// little time.
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

    fn dual_unary(function: Unary, x: &Dual<Self>) -> Dual<Self>;

    fn dual_binary(function: Binary, x: &Dual<Self>, y: &Dual<Self>) -> Dual<Self>;
}

impl<V: Elementwise> Number for Var<V> {
    #[inline]
    fn unary(&self, function: Unary) -> Var<V> {
        V::unary(function, self)
    }

    #[inline]
    fn binary(&self, function: Binary, other: &Var<V>) -> Var<V> {
        V::binary(function, self, other)
    }

    #[inline]
    fn unary_of(self, function: Unary) -> Var<V> {
        V::unary_of(function, self)
    }

    #[inline]
    fn binary_of(self, function: Binary, other: &Var<V>) -> Var<V> {
        V::binary_of(function, self, other)
    }
}

impl<V: Elementwise> Number for Dual<V>
where
    V::Tangent: Clone,
{
    #[inline]
    fn unary(&self, function: Unary) -> Dual<V> {
        V::dual_unary(function, self)
    }

    #[inline]
    fn binary(&self, function: Binary, other: &Dual<V>) -> Dual<V> {
        V::dual_binary(function, self, other)
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

/// An operator between two numbers of one kind, from every mix of owned and borrowed operands.
macro_rules! operator {
    ($kind:ident, $trait:ident, $method:ident) => {
        impl<V: Elementwise> $trait<&$kind<V>> for &$kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            #[inline]
            fn $method(self, other: &$kind<V>) -> $kind<V> {
                self.binary(Binary::$trait, other)
            }
        }
        impl<V: Elementwise> $trait<$kind<V>> for &$kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            #[inline]
            fn $method(self, other: $kind<V>) -> $kind<V> {
                self.binary(Binary::$trait, &other)
            }
        }
        impl<V: Elementwise> $trait<&$kind<V>> for $kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            #[inline]
            fn $method(self, other: &$kind<V>) -> $kind<V> {
                self.binary_of(Binary::$trait, other)
            }
        }
        impl<V: Elementwise> $trait<$kind<V>> for $kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            #[inline]
            fn $method(self, other: $kind<V>) -> $kind<V> {
                self.binary_of(Binary::$trait, &other)
            }
        }
    };
}

/// An operator between a number and a plain constant of its precision.
macro_rules! operator_with_constant {
    ($number:ty, $float:ident, $trait:ident, $method:ident, $by:ident, $from:ident) => {
        impl $trait<$float> for &$number {
            type Output = $number;
            #[inline]
            fn $method(self, other: $float) -> $number {
                Number::unary(self, Unary::$by(f64::from(other)))
            }
        }
        impl $trait<$float> for $number {
            type Output = $number;
            #[inline]
            fn $method(self, other: $float) -> $number {
                Number::unary_of(self, Unary::$by(f64::from(other)))
            }
        }
        impl $trait<&$number> for $float {
            type Output = $number;
            #[inline]
            fn $method(self, other: &$number) -> $number {
                Number::unary(other, Unary::$from(f64::from(self)))
            }
        }
        impl $trait<$number> for $float {
            type Output = $number;
            #[inline]
            fn $method(self, other: $number) -> $number {
                Number::unary_of(other, Unary::$from(f64::from(self)))
            }
        }
    };
}

macro_rules! constants_of {
    ($float:ident: $($number:ty),*) => {
        $(
            operator_with_constant!($number, $float, Add, add, Plus, Plus);
            operator_with_constant!($number, $float, Sub, sub, Less, SubtractFrom);
            operator_with_constant!($number, $float, Mul, mul, Times, Times);
            operator_with_constant!($number, $float, Div, div, Over, DivideInto);
        )*
    };
}

constants_of!(f32: Var<f32>, Dual<f32>);
constants_of!(f64: Var<f64>, Dual<f64>);
#[cfg(feature = "ndarray")]
constants_of!(f32: Var<ndarray::ArrayD<f32>>, Dual<ndarray::ArrayD<f32>>);
#[cfg(feature = "ndarray")]
constants_of!(f64: Var<ndarray::ArrayD<f64>>, Dual<ndarray::ArrayD<f64>>);

macro_rules! functions_of_one {
    ($kind:ident: $($method:ident $function:ident $what:literal;)*) => {
        impl<V: Elementwise> $kind<V>
        where
            $kind<V>: Number,
        {
            $(
                #[doc = $what]
                pub fn $method(&self) -> $kind<V> {
                    self.unary(Unary::$function)
                }
            )*
        }
    };
}

/// Operators and functions of one kind of numbers.
macro_rules! arithmetic_of {
    ($kind:ident) => {
        operator!($kind, Add, add);
        operator!($kind, Sub, sub);
        operator!($kind, Mul, mul);
        operator!($kind, Div, div);

        impl<V: Elementwise> Neg for &$kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            fn neg(self) -> $kind<V> {
                self.unary(Unary::Neg)
            }
        }

        impl<V: Elementwise> Neg for $kind<V>
        where
            $kind<V>: Number,
        {
            type Output = $kind<V>;
            fn neg(self) -> $kind<V> {
                self.unary_of(Unary::Neg)
            }
        }

        functions_of_one! {
            $kind:
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

        impl<V: Elementwise> $kind<V>
        where
            $kind<V>: Number,
        {
            /// An integer power.
            pub fn powi(&self, exponent: i32) -> $kind<V> {
                self.unary(Unary::Powi(exponent))
            }

            /// A power with a constant exponent.
            pub fn powf(&self, exponent: f64) -> $kind<V> {
                self.unary(Unary::Powf(exponent))
            }

            /// A power with an exponent that has a derivative too.
            pub fn pow(&self, exponent: &$kind<V>) -> $kind<V> {
                self.binary(Binary::Pow, exponent)
            }

            /// The larger of two; of equals, the derivative is that of the first.
            pub fn max(&self, other: &$kind<V>) -> $kind<V> {
                self.binary(Binary::Max, other)
            }

            /// The smaller of two; of equals, the derivative is that of the first.
            pub fn min(&self, other: &$kind<V>) -> $kind<V> {
                self.binary(Binary::Min, other)
            }

            /// The angle of the point (`other`, `self`).
            pub fn atan2(&self, other: &$kind<V>) -> $kind<V> {
                self.binary(Binary::Atan2, other)
            }

            /// The length of the vector of two.
            pub fn hypot(&self, other: &$kind<V>) -> $kind<V> {
                self.binary(Binary::Hypot, other)
            }
        }
    };
}

arithmetic_of!(Var);
arithmetic_of!(Dual);
