//! Values of a program that is being built.

use std::marker::PhantomData;

use ebbtide_ir::{LocalId, ValueId};

use crate::cx::Cx;
use crate::scalar::Scalar;

/// A value of type `T`, computed at one place of the program being built.
#[derive(Debug)]
pub struct Expr<T: Scalar> {
    pub(crate) id: ValueId,
    ty: PhantomData<T>,
}

/// A mutable local variable of type `T` of the program being built.
#[derive(Debug)]
pub struct Local<T: Scalar> {
    pub(crate) id: LocalId,
    ty: PhantomData<T>,
}

impl<T: Scalar> Clone for Expr<T> {
    fn clone(&self) -> Expr<T> {
        *self
    }
}

impl<T: Scalar> Copy for Expr<T> {}

impl<T: Scalar> Clone for Local<T> {
    fn clone(&self) -> Local<T> {
        *self
    }
}

impl<T: Scalar> Copy for Local<T> {}

impl<T: Scalar> Expr<T> {
    pub(crate) fn new(id: ValueId) -> Expr<T> {
        Expr { id, ty: PhantomData }
    }
}

impl<T: Scalar> Local<T> {
    pub(crate) fn new(id: LocalId) -> Local<T> {
        Local { id, ty: PhantomData }
    }
}

/// What a name can stand for where a value is wanted: a value, a local variable, a constant of Rust.
#[diagnostic::on_unimplemented(
    message = "this is not a scalar: it is `{Self}`",
    label = "a scalar is wanted here",
    note = "index an array to get an element (`u[i]`, `u[[i, j]]`, `loss[[]]`); arrays as wholes are arguments of \
            calls, `swap`, `fill` and `copy`"
)]
pub trait Readable {
    /// The type of the value.
    type Elem: Scalar;

    /// The value, as it is here.
    #[track_caller]
    fn read(&self, cx: &Cx) -> Expr<Self::Elem>;
}

impl<T: Scalar> Readable for Expr<T> {
    type Elem = T;

    fn read(&self, _: &Cx) -> Expr<T> {
        *self
    }
}

impl<T: Scalar> Readable for Local<T> {
    type Elem = T;

    #[track_caller]
    fn read(&self, cx: &Cx) -> Expr<T> {
        Expr::new(cx.emit(|b| b.get(self.id)))
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
    note = "nothing is converted by itself: write `x as {T}`, or in generic code `T::of(0.5)` for a constant"
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
    label = "not a `let mut` variable",
    note = "declare a variable with `let mut`; a scalar parameter does not change during a launch, copy it first: \
            `let mut x = x;`; whole arrays change through `copy`, `swap` and `fill`"
)]
pub trait Variable {
    /// The type of the variable.
    type Elem: Scalar;

    /// The variable.
    fn local(&self) -> Local<Self::Elem>;
}

impl<T: Scalar> Variable for Local<T> {
    type Elem = T;

    fn local(&self) -> Local<T> {
        *self
    }
}

/// What a function can return: the value of its last expression.
pub trait Returned {
    /// Something to go on with after an error.
    fn placeholder(cx: &Cx) -> Self;
}

impl Returned for () {
    fn placeholder(_: &Cx) {}
}

impl<T: Scalar> Returned for Expr<T> {
    #[track_caller]
    fn placeholder(cx: &Cx) -> Expr<T> {
        Expr::new(cx.emit(|b| b.literal(ebbtide_ir::Literal::zero(T::TYPE))))
    }
}
