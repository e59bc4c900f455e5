//! What a `sum` adds up.

use std::array::from_fn;

use super::{Mat2, Mat3, Mat4, Value, Vec2, Vec3, Vec4};
use crate::scalar::Number;

/// What can be summed: numbers, and small values that are made of numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be summed",
    label = "this is `{Self}`",
    note = "sums are of numbers, and of vectors, matrices, tuples and arrays of a fixed length of them; \
            `select(c, 1, 0)` counts with a `bool`"
)]
pub trait Summand: Value {
    /// The value all of whose numbers are this one.
    fn all(number: f64) -> Self;

    /// The sum of the two, number by number.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Summand for $t {
            fn all(number: f64) -> $t {
                number as $t
            }

            fn plus(self, other: $t) -> $t {
                self + other
            }
        }
    )*};
}

numbers! { f32 f64 i32 i64 u32 usize }

impl<T: Summand, const N: usize> Summand for [T; N] {
    fn all(number: f64) -> [T; N] {
        [T::all(number); N]
    }

    fn plus(self, other: [T; N]) -> [T; N] {
        from_fn(|k| self[k].plus(other[k]))
    }
}

macro_rules! vectors {
    ($($vector:ident $matrix:ident)*) => {$(
        impl<T: Number> Summand for $vector<T> {
            fn all(number: f64) -> $vector<T> {
                $vector::splat(T::all(number))
            }

            fn plus(self, other: $vector<T>) -> $vector<T> {
                $vector::from_array(self.to_array().plus(other.to_array()))
            }
        }

        impl<T: Number> Summand for $matrix<T> {
            fn all(number: f64) -> $matrix<T> {
                $matrix { rows: <[$vector<T>; _]>::all(number) }
            }

            fn plus(self, other: $matrix<T>) -> $matrix<T> {
                $matrix { rows: self.rows.plus(other.rows) }
            }
        }
    )*};
}

vectors! { Vec2 Mat2 Vec3 Mat3 Vec4 Mat4 }

macro_rules! tuples {
    ($($t:ident $k:tt),*) => {
        impl<$($t: Summand),*> Summand for ($($t,)*) {
            fn all(number: f64) -> Self {
                ($($t::all(number),)*)
            }

            fn plus(self, other: Self) -> Self {
                ($(self.$k.plus(other.$k),)*)
            }
        }
    };
}

tuples! { A 0, B 1 }
tuples! { A 0, B 1, C 2 }
tuples! { A 0, B 1, C 2, D 3 }
tuples! { A 0, B 1, C 2, D 3, E 4 }
tuples! { A 0, B 1, C 2, D 3, E 4, F 5 }
