//! Methods of numbers, with std's names and meaning.

use ebbtide_ir::{Binary, Compare, Function, Literal, Unary};

use crate::cx::Cx;
use crate::scalar::{Float, Integer, Number, Scalar, Signed};
use crate::value::{Expr, Same};

macro_rules! unary {
    ($($name:ident, $op:ident, $kind:ident;)*) => {$(
        #[doc = concat!("`x.", stringify!($name), "()`.")]
        #[track_caller]
        pub fn $name<T: $kind>(cx: &Cx, x: Expr<T>) -> Expr<T> {
            Expr::new(cx.emit(|b| b.unary(Unary::$op, x.id)))
        }
    )*};
}

unary! {
    abs, Abs, Signed;
    sqrt, Sqrt, Float;
    floor, Floor, Float;
    ceil, Ceil, Float;
    round, Round, Float;
    trunc, Trunc, Float;
}

macro_rules! functions {
    ($($name:ident, $function:ident;)*) => {$(
        #[doc = concat!("`x.", stringify!($name), "()`.")]
        #[track_caller]
        pub fn $name<T: Float>(cx: &Cx, x: Expr<T>) -> Expr<T> {
            Expr::new(cx.emit(|b| b.math(Function::$function, &[x.id])))
        }
    )*};
}

functions! {
    sin, Sin; cos, Cos; tan, Tan; asin, Asin; acos, Acos; atan, Atan; sinh, Sinh; cosh, Cosh; tanh, Tanh;
    exp, Exp; exp2, Exp2; exp_m1, ExpM1; ln, Ln; ln_1p, Ln1p; log2, Log2; log10, Log10; cbrt, Cbrt; erf, Erf;
}

macro_rules! functions_of_two {
    ($($name:ident, $function:ident;)*) => {$(
        #[doc = concat!("`x.", stringify!($name), "(y)`.")]
        #[track_caller]
        pub fn $name<T: Float, B: Scalar + Same<T>>(cx: &Cx, x: Expr<T>, y: Expr<B>) -> Expr<T> {
            Expr::new(cx.emit(|b| b.math(Function::$function, &[x.id, y.id])))
        }
    )*};
}

functions_of_two! { atan2, Atan2; powf, Powf; hypot, Hypot; }

/// `x.powi(n)`.
#[track_caller]
pub fn powi<T: Float, B: Scalar + Same<i32>>(cx: &Cx, x: Expr<T>, n: Expr<B>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.math(Function::Powi, &[x.id, n.id])))
}

/// `x.rem_euclid(y)`: the remainder that is never negative.
#[track_caller]
pub fn rem_euclid<T: Integer, B: Scalar + Same<T>>(cx: &Cx, x: Expr<T>, y: Expr<B>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.binary(Binary::RemEuclid, x.id, y.id)))
}

/// `x.min(y)`.
#[track_caller]
pub fn min<T: Number, B: Scalar + Same<T>>(cx: &Cx, x: Expr<T>, y: Expr<B>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.binary(Binary::Min, x.id, y.id)))
}

/// `x.max(y)`.
#[track_caller]
pub fn max<T: Number, B: Scalar + Same<T>>(cx: &Cx, x: Expr<T>, y: Expr<B>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.binary(Binary::Max, x.id, y.id)))
}

/// `x.clamp(low, high)`; NaN stays NaN, so it is not made of `min` and `max`.
#[track_caller]
pub fn clamp<T: Number, L: Scalar + Same<T>, H: Scalar + Same<T>>(
    cx: &Cx,
    x: Expr<T>,
    low: Expr<L>,
    high: Expr<H>,
) -> Expr<T> {
    Expr::new(cx.emit(|b| {
        let below = b.compare(Compare::Lt, x.id, low.id);
        let raised = b.select(below, low.id, x.id);
        let above = b.compare(Compare::Gt, raised, high.id);
        b.select(above, high.id, raised)
    }))
}

/// `x.signum()`: 1 with the sign of `x`, that of a zero included; NaN of NaN.
#[track_caller]
pub fn signum<T: Float>(cx: &Cx, x: Expr<T>) -> Expr<T> {
    Expr::new(cx.emit(|b| {
        let zero = b.literal(Literal::zero(<T as Scalar>::TYPE));
        let one = b.literal(Literal::of(<T as Scalar>::TYPE, 1.0));
        let minus_one = b.literal(Literal::of(<T as Scalar>::TYPE, -1.0));
        // The reciprocal of a zero is an infinity of its sign.
        let reciprocal = b.binary(Binary::Div, one, x.id);
        let is_positive = b.compare(Compare::Gt, x.id, zero);
        let is_plus_zero = b.compare(Compare::Gt, reciprocal, zero);
        let has_plus = b.binary(Binary::Or, is_positive, is_plus_zero);
        let sign = b.select(has_plus, one, minus_one);
        let is_number = b.compare(Compare::Eq, x.id, x.id);
        b.select(is_number, sign, x.id)
    }))
}

/// `x.mul_add(a, b)`: `x * a + b`, rounded once.
#[track_caller]
pub fn mul_add<T: Float, A: Scalar + Same<T>, B: Scalar + Same<T>>(
    cx: &Cx,
    x: Expr<T>,
    a: Expr<A>,
    b: Expr<B>,
) -> Expr<T> {
    Expr::new(cx.emit(|builder| builder.fma(x.id, a.id, b.id)))
}
