//! Literals, values with names, local variables.

use ebbtide_ir::Literal;

use crate::cx::Cx;
use crate::scalar::Scalar;
use crate::value::{Expr, Local, Readable, Same, Variable};

/// A literal; its type is found as for any literal of Rust.
#[track_caller]
pub fn lit<T: Scalar>(cx: &Cx, value: T) -> Expr<T> {
    Expr::new(cx.emit(|b| b.literal(value.literal())))
}

/// The next parameter of the program, a scalar.
pub fn scalar<T: Scalar>(cx: &Cx, name: &str) -> Expr<T> {
    Expr::new(cx.emit(|b| b.scalar(name, T::TYPE)))
}

/// What a name stands for here.
#[track_caller]
pub fn read<V: Readable<Elem = T>, T: Scalar>(cx: &Cx, variable: &V) -> Expr<T> {
    variable.read(cx)
}

/// `let name = value;`
pub fn named<T: Scalar>(cx: &Cx, name: &str, value: Expr<T>) -> Expr<T> {
    cx.emit(|b| b.name(value.id, name));
    value
}

/// `let …: T = value;`
pub fn ascribe<T: Scalar, B: Scalar + Same<T>>(value: Expr<B>) -> Expr<T> {
    Expr::new(value.id)
}

/// `let mut name = value;`
#[track_caller]
pub fn local<T: Scalar>(cx: &Cx, name: &str, value: Expr<T>) -> Local<T> {
    Local::new(cx.emit(|b| b.local(name, value.id)))
}

/// The variable that an `if` used as a value sets in both arms.
#[track_caller]
pub fn fresh<T: Scalar>(cx: &Cx) -> Local<T> {
    let zero = Expr::new(cx.emit(|b| b.literal(Literal::zero(T::TYPE))));
    numbered_local(cx, "if", zero)
}

/// A variable of the expansion's own, with a number that tells it from others.
#[track_caller]
pub fn numbered_local<T: Scalar>(cx: &Cx, name: &str, value: Expr<T>) -> Local<T> {
    Local::new(cx.emit(|b| {
        let name = format!("{name}_{}", b.program().locals.len());
        b.local(&name, value.id)
    }))
}

/// `variable = value;`
#[track_caller]
pub fn set<V: Variable<Elem = T>, T: Scalar, B: Scalar + Same<T>>(cx: &Cx, variable: &V, value: Expr<B>) {
    cx.emit(|b| b.set(variable.local().id, value.id));
}

/// The first value of a variable that is set before it is read.
#[track_caller]
pub fn zero<T: Scalar>(cx: &Cx) -> Expr<T> {
    Expr::new(cx.emit(|b| b.literal(Literal::zero(T::TYPE))))
}

/// `value`, which has the type of a value of the program: what a `match` is checked on.
pub fn of_type_of<T: Scalar>(value: T, _: &Expr<T>) -> T {
    value
}
