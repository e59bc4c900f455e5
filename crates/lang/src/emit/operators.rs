//! Operators and casts.
//!
//! Written out, not made by a macro: rustc shows these lines to users whose types do not fit.

use ebbtide_ir::{Binary, Compare, Unary};

use crate::cx::Cx;
use crate::scalar::{Bits, Integer, Number, Scalar};
use crate::value::{CastTarget, Expr, Same};

#[track_caller]
fn binary<T: Scalar, B: Scalar>(cx: &Cx, op: Binary, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    Expr::new(cx.emit(|builder| builder.binary(op, a.id, b.id)))
}

#[track_caller]
fn compare<T: Scalar, B: Scalar>(cx: &Cx, op: Compare, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    Expr::new(cx.emit(|builder| builder.compare(op, a.id, b.id)))
}

/// `a % b`.
#[track_caller]
pub fn rem<T: Number, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    binary(cx, Binary::Rem, a, b)
}

/// `a & b`.
#[track_caller]
pub fn bit_and<T: Bits, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    binary(cx, Binary::And, a, b)
}

/// `a | b`.
#[track_caller]
pub fn bit_or<T: Bits, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    binary(cx, Binary::Or, a, b)
}

/// What can stand on the right of `^` with an `A` on the left.
#[diagnostic::on_unimplemented(
    message = "there is no `{A}` ^ `{Self}`: `^` combines bits; a power is `x.powi(2)` or `x.powf(2.0)`",
    label = "this is `{Self}`, the other side is `{A}`"
)]
pub trait Xor<A: Scalar>: Scalar {}

#[diagnostic::do_not_recommend]
impl<T: Bits> Xor<T> for T {}

/// `a ^ b`.
#[track_caller]
pub fn bit_xor<A: Scalar, B: Xor<A>>(cx: &Cx, a: Expr<A>, b: Expr<B>) -> Expr<A> {
    binary(cx, Binary::Xor, a, b)
}

/// `a << b`.
#[track_caller]
pub fn shl<T: Integer, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    binary(cx, Binary::Shl, a, b)
}

/// `a >> b`.
#[track_caller]
pub fn shr<T: Integer, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<T> {
    binary(cx, Binary::Shr, a, b)
}

/// `a == b`.
#[track_caller]
pub fn eq<T: Scalar, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Eq, a, b)
}

/// `a != b`.
#[track_caller]
pub fn ne<T: Scalar, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Ne, a, b)
}

/// `a < b`.
#[track_caller]
pub fn lt<T: Number, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Lt, a, b)
}

/// `a <= b`.
#[track_caller]
pub fn le<T: Number, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Le, a, b)
}

/// `a > b`.
#[track_caller]
pub fn gt<T: Number, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Gt, a, b)
}

/// `a >= b`.
#[track_caller]
pub fn ge<T: Number, B: Scalar + Same<T>>(cx: &Cx, a: Expr<T>, b: Expr<B>) -> Expr<bool> {
    compare(cx, Compare::Ge, a, b)
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
