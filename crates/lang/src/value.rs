//! Values of a program that is being built.

use std::fmt;
use std::ops::Deref;

use crate::cx::Cx;
use crate::scalar::Scalar;
use crate::small::{Value, from_ids, variables};

/// A value of type `T`, computed at one place of the program being built.
pub struct Expr<T: Value> {
    /// The value, or its parts.
    pub(crate) id: T::Exprs,
}

/// A mutable local variable of type `T` of the program being built.
pub struct Local<T: Value> {
    /// The variable, or its parts.
    pub(crate) id: T::Locals,
}

impl<T: Value> Clone for Expr<T> {
    fn clone(&self) -> Expr<T> {
        *self
    }
}

impl<T: Value> Copy for Expr<T> {}

impl<T: Value> Clone for Local<T> {
    fn clone(&self) -> Local<T> {
        *self
    }
}

impl<T: Value> Copy for Local<T> {}

impl<T: Value> Expr<T> {
    #[doc(hidden)]
    pub fn new(id: T::Exprs) -> Expr<T> {
        Expr { id }
    }
}

impl<T: Value> Local<T> {
    #[doc(hidden)]
    pub fn new(id: T::Locals) -> Local<T> {
        Local { id }
    }
}

/// Fields are those of the parts.
impl<T: Value> Deref for Expr<T> {
    type Target = T::Exprs;

    fn deref(&self) -> &T::Exprs {
        &self.id
    }
}

/// Fields are those of the parts.
impl<T: Value> Deref for Local<T> {
    type Target = T::Locals;

    fn deref(&self) -> &T::Locals {
        &self.id
    }
}

impl<T: Value> fmt::Debug for Expr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expr<{}>", std::any::type_name::<T>())
    }
}

impl<T: Value> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local<{}>", std::any::type_name::<T>())
    }
}

/// What a name can stand for where a value is wanted: a value, a local variable, a constant of Rust.
#[diagnostic::on_unimplemented(
    message = "this is not a value: it is `{Self}`",
    label = "a value is wanted here",
    note = "index an array to get an element (`u[i]`, `u[[i, j]]`, `loss[[]]`); arrays as wholes are arguments of \
            calls, `swap`, `fill` and `copy`"
)]
pub trait Readable {
    /// The type of the value.
    type Elem: Value;

    /// The value, as it is here.
    #[track_caller]
    fn read(&self, cx: &Cx) -> Expr<Self::Elem>;
}

impl<T: Value> Readable for Expr<T> {
    type Elem = T;

    fn read(&self, _: &Cx) -> Expr<T> {
        *self
    }
}

impl<T: Value> Readable for Local<T> {
    type Elem = T;

    #[track_caller]
    fn read(&self, cx: &Cx) -> Expr<T> {
        let all: Vec<_> = variables(self).into_iter().map(|local| cx.emit(|b| b.get(local))).collect();
        from_ids(&all)
    }
}

macro_rules! readable_constants {
    ($($t:ty)*) => {$(
        impl Readable for $t {
            type Elem = $t;

            #[track_caller]
            fn read(&self, cx: &Cx) -> Expr<$t> {
                crate::emit::lit(cx, *self)
            }
        }
    )*};
}

readable_constants! { f32 f64 i32 i64 u32 bool usize }

/// Holds for a type and itself: nothing is converted by itself.
#[diagnostic::on_unimplemented(
    message = "this is `{Self}`, the other side is `{T}`: cast one of them",
    label = "this is `{Self}`, the other side is `{T}`",
    note = "nothing is converted by itself: write `x as {T}`; a float constant has a point, as `2.0`; in generic code it is `T::of(2.0)`"
)]
pub trait Same<T> {}

impl<T> Same<T> for T {}

/// The type of a condition: `bool`.
#[diagnostic::on_unimplemented(
    message = "a condition is `bool`, this is `{Self}`",
    label = "this is `{Self}`, not `bool`",
    note = "compare it, as in `x != 0`"
)]
pub trait Truth: Scalar {}

impl Truth for bool {}

/// The type of indices and loop bounds: `usize`.
#[diagnostic::on_unimplemented(
    message = "indices and loop bounds are `usize`, this is `{Self}`",
    label = "this is `{Self}`, not `usize`",
    note = "cast it: `u[idx[i] as usize]`"
)]
pub trait Index: Scalar {}

impl Index for usize {}

/// What `as` can convert to: numbers.
#[diagnostic::on_unimplemented(
    message = "nothing is cast to `{Self}`",
    label = "not a type to cast to",
    note = "`as` converts to `f32 f64 i32 i64 u32 usize`; to get a `bool`, compare: `x != 0`"
)]
pub trait CastTarget: Scalar {}

macro_rules! cast_targets {
    ($($t:ty)*) => { $(impl CastTarget for $t {})* };
}

// One by one: a blanket implementation would blame `bool` for not being a number.
cast_targets! { f32 f64 i32 i64 u32 usize }

/// What `=` and `+=` can change: a local variable.
#[diagnostic::on_unimplemented(
    message = "this cannot be assigned to: it is `{Self}`",
    label = "not a `let mut` variable, nor an element such as `loss[[]]` or `u[i]`",
    note = "declare a variable with `let mut`; a scalar parameter does not change during a launch, copy it first: \
            `let mut x = x;`; of an array the elements are assigned to: `loss[[]] += x`, `u[i] = x`, `u[[i, j]] = x`; whole \
            arrays change through `copy`, `swap` and `fill`"
)]
pub trait Variable {
    /// The type of the variable.
    type Elem: Value;

    /// The variable.
    fn local(&self) -> Local<Self::Elem>;
}

impl<T: Value> Variable for Local<T> {
    type Elem = T;

    fn local(&self) -> Local<T> {
        *self
    }
}

/// What a function can return: the value of its last expression.
pub trait Returned {
    /// Something to continue with after an error.
    fn placeholder(cx: &Cx) -> Self;
}

impl Returned for () {
    fn placeholder(_: &Cx) {}
}

impl<T: Value> Returned for Expr<T> {
    #[track_caller]
    fn placeholder(cx: &Cx) -> Expr<T> {
        crate::emit::zero(cx)
    }
}
