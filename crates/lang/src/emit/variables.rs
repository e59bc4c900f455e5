//! Literals, values with names, local variables.

use ebbtide_ir::{Literal, LocalId, Type};

use crate::cx::Cx;
use crate::scalar::{Float, Scalar};
use crate::small::{Value, from_ids, ids, names, types, variables};
use crate::value::{Expr, Local, Readable, Same, Variable};

/// A literal; its type is found as for any literal of Rust.
#[track_caller]
pub fn lit<T: Scalar>(cx: &Cx, value: T) -> Expr<T> {
    Expr::new(cx.emit(|b| b.literal(value.literal())))
}

/// `-1` as a bound of a loop: in programs an index may be negative as long as nothing is indexed with it.
pub fn negative(cx: &Cx, magnitude: usize) -> Expr<usize> {
    let bits = (magnitude as u64).wrapping_neg();
    Expr::new(cx.emit(|b| b.literal(Literal::from_bits(Type::Index, bits))))
}

/// `rand(seed, index)` without a type: it takes its type from where it is used, as a literal does, and `like` is one.
pub fn drawn<T: Float>(_like: T, number: Expr<T>) -> Expr<T> {
    number
}

/// The next parameter of the program: a scalar, or the scalars of a small value.
pub fn scalar<T: Value>(cx: &Cx, name: &str) -> Expr<T> {
    T::declare(cx, name)
}

/// What a name stands for here.
#[track_caller]
pub fn read<V: Readable<Elem = T>, T: Value>(cx: &Cx, variable: &V) -> Expr<T> {
    variable.read(cx)
}

/// `let name = value;`
pub fn named<T: Value>(cx: &Cx, name: &str, value: Expr<T>) -> Expr<T> {
    for (id, name) in ids(&value).into_iter().zip(names::<T>(name)) {
        cx.emit(|b| b.name(id, &name));
    }
    value
}

/// `let …: T = value;`
pub fn ascribe<T: Value, B: Value + Same<T>>(value: Expr<B>) -> Expr<T> {
    from_ids(&ids(&value))
}

/// `let mut name = value;`
#[track_caller]
pub fn local<T: Value>(cx: &Cx, name: &str, value: Expr<T>) -> Local<T> {
    let mut parts = ids(&value).into_iter().zip(names::<T>(name));
    let mut all = Vec::new();
    parts.by_ref().for_each(|(id, name)| all.push(cx.emit(|b| b.local(&name, id))));
    let mut next = all.into_iter();
    // There are as many as the type has parts.
    Local::new(T::locals(&mut |_| next.next().unwrap_or(LocalId::from_index(0))))
}

/// The variable that an `if` used as a value sets in both arms.
#[track_caller]
pub fn fresh<T: Value>(cx: &Cx) -> Local<T> {
    let zero = zero(cx);
    numbered_local(cx, "if", zero)
}

/// A variable of the expansion's own, with a number that tells it from others.
#[track_caller]
pub fn numbered_local<T: Value>(cx: &Cx, name: &str, value: Expr<T>) -> Local<T> {
    let name = cx.emit(|b| format!("{name}_{}", b.program().locals.len()));
    local(cx, &name, value)
}

/// `variable = value;`
#[track_caller]
pub fn set<V: Variable<Elem = T>, T: Value, B: Value + Same<T>>(cx: &Cx, variable: &V, value: Expr<B>) {
    for (local, id) in variables(&variable.local()).into_iter().zip(ids(&value)) {
        cx.emit(|b| b.set(local, id));
    }
}

/// `variable += value;` and its kin: `new` computes what it becomes.
#[track_caller]
pub fn change<V: Variable<Elem = T>, T: Value, B: Value + Same<T>>(
    cx: &Cx,
    variable: &V,
    new: impl FnOnce(Expr<T>) -> Expr<B>,
) {
    let variable = variable.local();
    let new = new(variable.read(cx));
    set(cx, &variable, new);
}

/// The first value of a variable that is set before it is read.
#[track_caller]
pub fn zero<T: Value>(cx: &Cx) -> Expr<T> {
    let all: Vec<_> = types::<T>().into_iter().map(|ty| cx.emit(|b| b.literal(Literal::zero(ty)))).collect();
    from_ids(&all)
}

/// `value`, which has the type of a value of the program: what rustc checks a pattern or a struct on.
pub fn of_type_of<T: Value>(value: T, _: &Expr<T>) -> T {
    value
}

/// A constant of Rust.
#[track_caller]
pub fn constant<T: Value>(cx: &Cx, value: T) -> Expr<T> {
    crate::small::constant(cx, value)
}
