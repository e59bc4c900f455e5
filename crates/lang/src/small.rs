//! Small values: vectors, matrices, tuples, arrays of a fixed length, structs of scalars.
//!
//! Input: the types of the host, which are plain Rust with the usual operators. Output: while a program is built, a small
//! value is its parts, each a scalar of the program; a `let mut` variable of such a type is one local variable for each
//! part. So the program, its derivatives and the devices see scalars alone, and a small value costs what its components
//! cost. Invariant: the parts have one order, that of [`Value::each_expr`], which is the order of fields, elements and
//! matrix rows.
//!
//! [`Expr`] and [`Local`] dereference to their parts, so that `v.x`, `pair.0` and `particle.pos` are what rustc makes of
//! field access.

mod aggregates;
mod cofactors;
mod elimination;
mod layout;
mod matrices;
mod summand;
mod vectors;

use std::any::Any;

use ebbtide_ir::{Literal, LocalId, Type, ValueId};

use crate::cx::Cx;
use crate::handle::Handle;
use crate::value::{Expr, Local};

pub use aggregates::Tuple;
pub use elimination::Solvable;
pub use matrices::{Mat2, Mat3, Mat4};
pub use summand::Summand;
pub use vectors::{Vec2, Vec3, Vec4};

/// A type that values of a program can have: scalars, and what is made of a fixed number of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of values",
    label = "not a type of values",
    note = "values are scalars (`f32 f64 i32 i64 u32 bool usize`), vectors and matrices (`Vec3<f64>`, `Mat2<f32>`), tuples, \
            arrays of a fixed length (`[f64; 4]`), and structs of these with `#[derive(Clone, Copy, Value)]`; arrays such as \
            `Array1<f64>` are passed by `&` or `&mut`"
)]
pub trait Value: Copy + Send + Sync + 'static {
    /// That it is part of the language: see [`Known`](crate::Known).
    #[doc(hidden)]
    const IS_KNOWN: bool = true;

    /// What stands for a parameter of this type: [`Expr<Self>`](Expr).
    type Given: Handle;
    /// Its parts as values.
    type Exprs: Copy;
    /// Its parts as local variables.
    type Locals: Copy;

    /// Its parts, each made by `next`.
    fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> Self::Exprs;

    /// Its parts as variables, each made by `next`.
    fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> Self::Locals;

    /// Visits the scalars of its parts in order.
    fn each_expr(parts: &Self::Exprs, visit: &mut dyn FnMut(ValueId));

    /// Visits the variables of its parts in order.
    fn each_local(parts: &Self::Locals, visit: &mut dyn FnMut(LocalId));

    /// Visits the names of its scalars, where it has this name itself: `v.x`, `v.y`.
    fn names(name: &str, visit: &mut dyn FnMut(String));

    /// Visits its scalars as constants.
    fn literals(self, visit: &mut dyn FnMut(Literal));

    /// The value with these constants, each of its part's type.
    fn of_literals(next: &mut dyn FnMut() -> Literal) -> Self;

    /// Visits its scalars.
    fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any));

    /// Visits its scalars, to be changed.
    fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any));

    /// A copy of it.
    #[doc(hidden)]
    fn again(&self) -> Self {
        *self
    }

    /// Declares it as the next parameter of the program: one scalar for each part.
    fn declare(cx: &Cx, name: &str) -> Expr<Self> {
        let declare = |(name, ty): (String, _)| cx.emit(|b| b.scalar(&name, ty));
        let all: Vec<_> = names::<Self>(name).into_iter().zip(types::<Self>()).map(declare).collect();
        from_ids(&all)
    }
}

/// Hands all types of values of this crate to a macro, each with its type parameters.
macro_rules! all_values {
    ($to:ident) => {
        $to! {
            [] f32;
            [] f64;
            [] i32;
            [] i64;
            [] u32;
            [] bool;
            [] usize;
            [T: $crate::Scalar] $crate::Vec2<T>;
            [T: $crate::Scalar] $crate::Vec3<T>;
            [T: $crate::Scalar] $crate::Vec4<T>;
            [T: $crate::Scalar] $crate::Mat2<T>;
            [T: $crate::Scalar] $crate::Mat3<T>;
            [T: $crate::Scalar] $crate::Mat4<T>;
            [T: $crate::Value, const N: usize] [T; N];
            [A: $crate::Value, B: $crate::Value] (A, B);
            [A: $crate::Value, B: $crate::Value, C: $crate::Value] (A, B, C);
            [A: $crate::Value, B: $crate::Value, C: $crate::Value, D: $crate::Value] (A, B, C, D);
            [A: $crate::Value, B: $crate::Value, C: $crate::Value, D: $crate::Value, E: $crate::Value] (A, B, C, D, E);
            [A: $crate::Value, B: $crate::Value, C: $crate::Value, D: $crate::Value, E: $crate::Value, F: $crate::Value]
                (A, B, C, D, E, F);
        }
    };
}

pub(crate) use all_values;

/// The scalars of a value.
pub(crate) fn ids<T: Value>(value: &Expr<T>) -> Vec<ValueId> {
    let mut all = Vec::new();
    T::each_expr(&value.id, &mut |id| all.push(id));
    all
}

/// The variables of a variable.
pub(crate) fn variables<T: Value>(variable: &Local<T>) -> Vec<LocalId> {
    let mut all = Vec::new();
    T::each_local(&variable.id, &mut |id| all.push(id));
    all
}

/// The value with these scalars, which are as many as it has parts.
pub(crate) fn from_ids<T: Value>(ids: &[ValueId]) -> Expr<T> {
    let mut next = ids.iter().copied();
    let first = ids.first().copied().unwrap_or(ValueId::from_index(0));
    Expr::new(T::exprs(&mut |_| next.next().unwrap_or(first)))
}

/// The names of the scalars of a value.
pub(crate) fn names<T: Value>(name: &str) -> Vec<String> {
    let mut all = Vec::new();
    T::names(name, &mut |name| all.push(name));
    all
}

/// The types of the scalars of a value, in order.
pub(crate) fn types<T: Value>() -> Vec<Type> {
    let mut all = Vec::new();
    let _ = T::exprs(&mut |ty| {
        all.push(ty);
        ValueId::from_index(0)
    });
    all
}

/// A constant of the host as a value.
#[track_caller]
pub(crate) fn constant<T: Value>(cx: &Cx, value: T) -> Expr<T> {
    let mut all = Vec::new();
    value.literals(&mut |literal| all.push(cx.emit(|b| b.literal(literal))));
    from_ids(&all)
}

/// A value that is indexed: its items have one type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not indexed: it has no items",
    label = "indexed once too often",
    note = "vectors are indexed `v[k]`, matrices `m[[i, j]]` or `m[i]` for a row, arrays of a fixed length `a[k]`"
)]
pub trait Sequence: Value {
    /// The type of an item.
    type Item: Value;

    /// The items of a value.
    fn items(parts: &Self::Exprs) -> Vec<Expr<Self::Item>>;

    /// The items of a variable.
    fn variables(parts: &Self::Locals) -> Vec<Local<Self::Item>>;
}
