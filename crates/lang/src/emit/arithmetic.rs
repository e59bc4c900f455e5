//! `+ - * /` and minus, of scalars and of small values.
//!
//! Which types go together is a trait for each operator, so that rustc checks it: numbers of one type, vectors and
//! matrices of one type, a number times either, a matrix times a vector or a matrix. The traits are those of the right side:
//! rustc then takes it as it is, and says that it does not fit, where it would else expect the type of the left one.

use std::array::from_fn;

use ebbtide_ir::{Binary, Unary};

use crate::cx::Cx;
use crate::scalar::{Number, Scalar, Signed};
use crate::small::{Mat2, Mat3, Mat4, Value, Vec2, Vec3, Vec4};
use crate::value::Expr;

macro_rules! operators {
    ($($sign:literal, $trait:ident, $method:ident, $message:literal;)*) => {$(
        #[doc = concat!("What can stand on the right of `", $sign, "` with an `A` on the left.")]
        #[diagnostic::on_unimplemented(
            message = $message,
            label = "this is `{Self}`, the other side is `{A}`",
            note = "nothing is converted by itself: write `x as f64`; a float constant has a point, as `2.0`; in generic code it is \
                    `T::of(2.0)`; `select(c, 1.0, 0.0)` counts with a `bool`; vectors are multiplied with `a.dot(b)`, `a.cross(b)`, \
                    `a.outer(b)`"
        )]
        pub trait $trait<A: Value>: Value {
            /// The type of the result.
            type Output: Value;

            /// Computes it.
            #[track_caller]
            fn $method(cx: &Cx, a: Expr<A>, b: Expr<Self>) -> Expr<Self::Output>;
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> $trait<T> for T {
            type Output = T;

            #[track_caller]
            fn $method(cx: &Cx, a: Expr<T>, b: Expr<T>) -> Expr<T> {
                scalar(cx, Binary::$trait, a, b)
            }
        }
    )*};
}

operators! {
    "+", Add, plus, "there is no `{A}` + `{Self}`: cast one of them";
    "-", Sub, minus, "there is no `{A}` - `{Self}`: cast one of them";
    "*", Mul, times, "there is no `{A}` * `{Self}`: cast one of them, or write the product that is meant";
    "/", Div, over, "there is no `{A}` / `{Self}`: cast one of them";
}

// Written out: rustc shows these lines to users whose types do not fit.

/// `a + b`.
#[track_caller]
pub fn add<A: Value, B: Add<A, Output = C>, C: Value>(cx: &Cx, a: Expr<A>, b: Expr<B>) -> Expr<C> {
    B::plus(cx, a, b)
}

/// `a - b`.
#[track_caller]
pub fn sub<A: Value, B: Sub<A, Output = C>, C: Value>(cx: &Cx, a: Expr<A>, b: Expr<B>) -> Expr<C> {
    B::minus(cx, a, b)
}

/// `a * b`.
#[track_caller]
pub fn mul<A: Value, B: Mul<A, Output = C>, C: Value>(cx: &Cx, a: Expr<A>, b: Expr<B>) -> Expr<C> {
    B::times(cx, a, b)
}

/// `a / b`.
#[track_caller]
pub fn div<A: Value, B: Div<A, Output = C>, C: Value>(cx: &Cx, a: Expr<A>, b: Expr<B>) -> Expr<C> {
    B::over(cx, a, b)
}

/// What has a minus before it.
#[diagnostic::on_unimplemented(
    message = "there is no -`{Self}`",
    label = "this is `{Self}`",
    note = "signed numbers, vectors and matrices of them have a minus; cast an unsigned one first, as in `x as i64`"
)]
pub trait Negated: Value {
    /// Computes it.
    #[track_caller]
    fn negated(cx: &Cx, a: Expr<Self>) -> Expr<Self>;
}

/// `-a`.
#[track_caller]
pub fn neg<T: Negated>(cx: &Cx, a: Expr<T>) -> Expr<T> {
    T::negated(cx, a)
}

#[diagnostic::do_not_recommend]
impl<T: Signed> Negated for T {
    #[track_caller]
    fn negated(cx: &Cx, a: Expr<T>) -> Expr<T> {
        Expr::new(cx.emit(|b| b.unary(Unary::Neg, a.id)))
    }
}

#[track_caller]
fn scalar<T: Scalar>(cx: &Cx, op: Binary, a: Expr<T>, b: Expr<T>) -> Expr<T> {
    Expr::new(cx.emit(|builder| builder.binary(op, a.id, b.id)))
}

/// The sum of the products of components, added in order.
#[track_caller]
pub(super) fn sum_of_products<T: Scalar, const N: usize>(
    cx: &Cx,
    a: [Expr<T>; N],
    b: [Expr<T>; N],
) -> Expr<T> {
    let products: [Expr<T>; N] = from_fn(|k| scalar(cx, Binary::Mul, a[k], b[k]));
    products[1..].iter().fold(products[0], |sum, product| scalar(cx, Binary::Add, sum, *product))
}

macro_rules! small_arithmetic {
    ($($name:ident, $n:literal, $to:ident, $from:ident;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Number> Add<$name<T>> for $name<T> {
            type Output = $name<T>;

            #[track_caller]
            fn plus(cx: &Cx, a: Expr<$name<T>>, b: Expr<$name<T>>) -> Expr<$name<T>> {
                let (a, b) = (a.id.$to(), b.id.$to());
                Expr::new($name::$from(from_fn(|k| scalar(cx, Binary::Add, a[k], b[k]))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> Sub<$name<T>> for $name<T> {
            type Output = $name<T>;

            #[track_caller]
            fn minus(cx: &Cx, a: Expr<$name<T>>, b: Expr<$name<T>>) -> Expr<$name<T>> {
                let (a, b) = (a.id.$to(), b.id.$to());
                Expr::new($name::$from(from_fn(|k| scalar(cx, Binary::Sub, a[k], b[k]))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> Mul<$name<T>> for T {
            type Output = $name<T>;

            #[track_caller]
            fn times(cx: &Cx, a: Expr<$name<T>>, b: Expr<T>) -> Expr<$name<T>> {
                let a = a.id.$to();
                Expr::new($name::$from(from_fn(|k| scalar(cx, Binary::Mul, a[k], b))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> Mul<T> for $name<T> {
            type Output = $name<T>;

            #[track_caller]
            fn times(cx: &Cx, a: Expr<T>, b: Expr<$name<T>>) -> Expr<$name<T>> {
                let b = b.id.$to();
                Expr::new($name::$from(from_fn(|k| scalar(cx, Binary::Mul, a, b[k]))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> Div<$name<T>> for T {
            type Output = $name<T>;

            #[track_caller]
            fn over(cx: &Cx, a: Expr<$name<T>>, b: Expr<T>) -> Expr<$name<T>> {
                let a = a.id.$to();
                Expr::new($name::$from(from_fn(|k| scalar(cx, Binary::Div, a[k], b))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Signed> Negated for $name<T> {
            #[track_caller]
            fn negated(cx: &Cx, a: Expr<$name<T>>) -> Expr<$name<T>> {
                let a = a.id.$to();
                Expr::new($name::$from(from_fn(|k| T::negated(cx, a[k]))))
            }
        }
    )*};
}

small_arithmetic! {
    Vec2, 2, to_array, from_array;
    Vec3, 3, to_array, from_array;
    Vec4, 4, to_array, from_array;
    Mat2, 4, to_elements, from_elements;
    Mat3, 9, to_elements, from_elements;
    Mat4, 16, to_elements, from_elements;
}

macro_rules! products {
    ($($matrix:ident, $vector:ident;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Number> Mul<$matrix<T>> for $vector<T> {
            type Output = $vector<T>;

            #[track_caller]
            fn times(cx: &Cx, a: Expr<$matrix<T>>, b: Expr<$vector<T>>) -> Expr<$vector<T>> {
                let b = b.id.to_array();
                Expr::new($vector::from_array(a.id.rows.map(|row| sum_of_products(cx, row.to_array(), b))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Number> Mul<$matrix<T>> for $matrix<T> {
            type Output = $matrix<T>;

            #[track_caller]
            fn times(cx: &Cx, a: Expr<$matrix<T>>, b: Expr<$matrix<T>>) -> Expr<$matrix<T>> {
                let columns = b.id.transpose().rows;
                let rows = a.id.rows.map(|row| {
                    let row = row.to_array();
                    $vector::from_array(columns.map(|column| sum_of_products(cx, row, column.to_array())))
                });
                Expr::new($matrix { rows })
            }
        }
    )*};
}

products! { Mat2, Vec2; Mat3, Vec3; Mat4, Vec4; }
