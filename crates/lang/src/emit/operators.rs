//! Operators and casts.

use ebbtide_ir::{Binary, Compare, Unary};

use crate::cx::Cx;
use crate::scalar::{Bits, Integer, Number, Scalar, Signed};
use crate::value::{CastTarget, Expr, Same};

macro_rules! binary {
    ($($name:ident, $sign:literal, $op:ident, $kind:ident;)*) => {$(
        #[doc = concat!("`a ", $sign, " b`.")]
        #[track_caller]
        pub fn $name<T: $kind, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
            Expr::new(cx.emit(|builder| builder.binary(Binary::$op, a.id, b.id)))
        }
    )*};
}

binary! {
    add, "+", Add, Number;
    sub, "-", Sub, Number;
    mul, "*", Mul, Number;
    div, "/", Div, Number;
    rem, "%", Rem, Number;
    bit_and, "&", And, Bits;
    bit_or, "|", Or, Bits;
    bit_xor, "^", Xor, Bits;
    shl, "<<", Shl, Integer;
    shr, ">>", Shr, Integer;
}

macro_rules! compare {
    ($($name:ident, $sign:literal, $op:ident, $kind:ident;)*) => {$(
        #[doc = concat!("`a ", $sign, " b`.")]
        #[track_caller]
        pub fn $name<T: $kind, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
            Expr::new(cx.emit(|builder| builder.compare(Compare::$op, a.id, b.id)))
        }
    )*};
}

compare! {
    eq, "==", Eq, Scalar;
    ne, "!=", Ne, Scalar;
    lt, "<", Lt, Number;
    le, "<=", Le, Number;
    gt, ">", Gt, Number;
    ge, ">=", Ge, Number;
}

/// `-a`.
#[track_caller]
pub fn neg<T: Signed>(cx: &Cx, a: Expr<T>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.unary(Unary::Neg, a.id)))
}

/// `!a`.
#[track_caller]
pub fn not<T: Bits>(cx: &Cx, a: Expr<T>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.unary(Unary::Not, a.id)))
}

/// `a as T`.
#[track_caller]
pub fn cast<T: CastTarget, S: Scalar>(cx: &Cx, a: Expr<S>) -> Expr<T> {
    match T::TYPE == S::TYPE {
        true => Expr::new(a.id),
        false => Expr::new(cx.emit(|b| b.cast(a.id, T::TYPE))),
    }
}
