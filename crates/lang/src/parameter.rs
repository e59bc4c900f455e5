//! Parameters of called programs and functions.
//!
//! Input: an argument of any type. Output: the handle of the parameter, given to a closure that expands the body.
//! Invariant: the type of a handle is named here alone. In expanded code it is the expected type of a closure's parameter,
//! so a parameter type that is not part of the language is one error at that type, and not one at each use.

use std::any::Any;
use std::fmt;

use ebbtide_runtime::Array;

use crate::cx::Cx;
use crate::field::Field;
use crate::handle::{ArrayHandle, Behind, Borrow, ByMut, ByRef, Handle, Lent};
use crate::scalar::{Item, Scalar};
use crate::small::{Mat2, Mat3, Mat4, Value, Vec2, Vec3, Vec4};
use crate::value::{Expr, Local};

/// Passed by value: a scalar or a small value.
#[derive(Clone, Copy, Debug)]
pub struct ByValue;

/// Lent to a `#[func]` by `&mut`: a variable, an array or a struct of arrays.
#[derive(Clone, Copy, Debug)]
pub struct ByLoan;

/// How a parameter of type `T` is passed, and what stands for it in the body.
pub trait How<T> {
    /// What stands for it.
    type Handle: Handle + 'static;
}

impl<T: Field> How<T> for ByRef {
    type Handle = T::Handle<ByRef>;
}

impl<T: Field> How<T> for ByMut {
    type Handle = T::Handle<ByMut>;
}

impl<T: Value> How<T> for ByValue {
    type Handle = T::Given;
}

impl<T: Lent> How<T> for ByLoan {
    type Handle = T::Handle;
}

/// A type, where it is known that it is part of the language.
///
/// Expanded code writes `<Body as Known<{ <Body as Value>::IS_KNOWN }>>::This` for a type of the user's. If the type lacks the
/// trait, the constant is an error, reported once, and rustc takes the whole for a type about which nothing more is said.
pub trait Known<const KNOWN: bool> {
    /// The type itself.
    type This;
}

impl<T> Known<true> for T {
    type This = T;
}

/// What can be passed for a parameter of type `T`, as `W` says.
///
/// The handle is erased: the signature of an expansion that named its type would repeat every complaint about it.
#[diagnostic::on_unimplemented(
    message = "the parameter is `{T}`, passed `{W}`, this argument is `{Self}`",
    label = "this is `{Self}`, the parameter is `{T}`, passed `{W}`",
    note = "where the called program writes an array, the caller's parameter must be `&mut` too; scalars are not \
            converted by themselves: write `x as f64`; a function that takes `x: &mut f64` is called with `&mut x`"
)]
pub trait Passed<T, W> {
    /// The handle of the parameter.
    #[track_caller]
    fn handle(&self, cx: &Cx) -> Box<dyn Any>;
}

/// Implements [`Passed`] by an [`Argument`] of the handle's type.
///
/// One by one, and not for all arguments of handles: rustc finds the type arguments of a generic program by looking for the
/// one implementation that fits the argument.
macro_rules! passed_by_argument {
    ($([$($generics:tt)*] $argument:ty => $param:ty, $how:ty, $handle:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> crate::Passed<$param, $how> for $argument {
            #[track_caller]
            fn handle(&self, cx: &crate::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                ::std::boxed::Box::new(crate::Argument::<$handle>::pass(self, cx))
            }
        }
    )*};
}

passed_by_argument! {
    [T: Value] Expr<T> => T, ByValue, Expr<T>;
    [T: Value] Local<T> => T, ByValue, Expr<T>;
    [T: Value] Local<T> => T, ByLoan, Local<T>;
    [T: Item, const R: usize, B: Borrow] ArrayHandle<T, R, B> => Array<T, R>, ByRef, ArrayHandle<T, R, ByRef>;
    [T: Item, const R: usize] ArrayHandle<T, R, ByMut> => Array<T, R>, ByMut, ArrayHandle<T, R, ByMut>;
    [T: Item, const R: usize] ArrayHandle<T, R, ByMut> => Array<T, R>, ByLoan, ArrayHandle<T, R, ByMut>;
    [] f32 => f32, ByValue, Expr<f32>;
    [] f64 => f64, ByValue, Expr<f64>;
    [] i32 => i32, ByValue, Expr<i32>;
    [] i64 => i64, ByValue, Expr<i64>;
    [] u32 => u32, ByValue, Expr<u32>;
    [] bool => bool, ByValue, Expr<bool>;
    [] usize => usize, ByValue, Expr<usize>;
    [T: Value, const N: usize] [T; N] => [T; N], ByValue, Expr<[T; N]>;
    [T: Scalar] Vec2<T> => Vec2<T>, ByValue, Expr<Vec2<T>>;
    [T: Scalar] Vec3<T> => Vec3<T>, ByValue, Expr<Vec3<T>>;
    [T: Scalar] Vec4<T> => Vec4<T>, ByValue, Expr<Vec4<T>>;
    [T: Scalar] Mat2<T> => Mat2<T>, ByValue, Expr<Mat2<T>>;
    [T: Scalar] Mat3<T> => Mat3<T>, ByValue, Expr<Mat3<T>>;
    [T: Scalar] Mat4<T> => Mat4<T>, ByValue, Expr<Mat4<T>>;
}

/// An argument for a parameter of type `T`, passed as `W` says, on its way to a program that is known by its type alone.
///
/// It names no handle, so that signatures made of it bring no complaints of their own.
pub struct Given<T, W>(Box<dyn Passed<T, W>>);

#[diagnostic::do_not_recommend]
impl<T, W> Passed<T, W> for Given<T, W> {
    #[track_caller]
    fn handle(&self, cx: &Cx) -> Box<dyn Any> {
        self.0.handle(cx)
    }
}

impl<T, W> fmt::Debug for Given<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given<{}>", std::any::type_name::<T>())
    }
}

/// An argument of a program that is known by its type alone.
pub fn given<T, W>(argument: impl Passed<T, W> + 'static) -> Given<T, W> {
    Given(Box::new(argument))
}

/// Expands `body` with the handle of a parameter, and with the arrays and scalars behind it.
#[track_caller]
pub fn passed<T, W: How<T>, R>(
    cx: &Cx,
    argument: &dyn Passed<T, W>,
    body: impl FnOnce(W::Handle, Vec<Behind>) -> R,
) -> R {
    let handle = argument.handle(cx).downcast::<W::Handle>();
    let handle = *handle.expect("implementations of `Passed` make the handle that `How` names");
    let mut bound = Vec::new();
    handle.bound(&mut |b| bound.push(b));
    body(handle, bound)
}
