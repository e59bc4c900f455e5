//! Arrays with tangents, and operators between tracked and plain arrays.

use std::ops::{Add, Div, Mul, Sub};

use ndarray::ArrayD;

use crate::array::{ArrayElement, nothing};
use crate::array_linear::{Dot, Linear};
use crate::{Dual, Result, Var};

impl<T: ArrayElement> Dual<ArrayD<T>> {
    /// The sum of all elements, as an array of rank zero.
    pub fn sum(&self) -> Dual<ArrayD<T>> {
        self.linear(Linear::Sum)
    }

    /// The mean of all elements, as an array of rank zero.
    pub fn mean(&self) -> Dual<ArrayD<T>> {
        self.linear(Linear::Mean)
    }

    /// The product of two matrices, of a matrix and a vector, of a vector and a matrix, or of two vectors.
    pub fn dot(&self, other: &Dual<ArrayD<T>>) -> Result<Dual<ArrayD<T>>> {
        Dual::apply(&Dot, &[self, other])
    }

    /// The array with its axes in reverse order.
    pub fn t(&self) -> Dual<ArrayD<T>> {
        self.linear(Linear::Transpose)
    }

    /// The same elements in another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Dual<ArrayD<T>>> {
        Dual::apply(&Linear::Reshape(shape.into()), &[self])
    }

    /// The array repeated along new leading axes and axes of length one.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Dual<ArrayD<T>>> {
        Dual::apply(&Linear::Broadcast(shape.into()), &[self])
    }

    /// The sums over what a [broadcast](Dual::broadcast) from `shape` repeats: its transpose.
    pub fn sum_to(&self, shape: &[usize]) -> Result<Dual<ArrayD<T>>> {
        Dual::apply(&Linear::SumTo(shape.into()), &[self])
    }

    fn linear(&self, map: Linear) -> Dual<ArrayD<T>> {
        Dual::apply(&map, &[self]).unwrap_or_else(|error| Dual::broken(nothing::<T>(), error))
    }
}

/// An operator between a tracked array and a plain one, which is a constant. It is copied: where one constant is used
/// often, [`Tape::constant`](crate::Tape::constant) shares it.
macro_rules! operator_with_array {
    ($kind:ident, $constant:path, $float:ident, $trait:ident, $method:ident) => {
        impl $trait<&ArrayD<$float>> for &$kind<ArrayD<$float>> {
            type Output = $kind<ArrayD<$float>>;
            fn $method(self, other: &ArrayD<$float>) -> $kind<ArrayD<$float>> {
                self.$method(&$constant(other.clone()))
            }
        }
        impl $trait<&ArrayD<$float>> for $kind<ArrayD<$float>> {
            type Output = $kind<ArrayD<$float>>;
            fn $method(self, other: &ArrayD<$float>) -> $kind<ArrayD<$float>> {
                self.$method(&$constant(other.clone()))
            }
        }
        impl $trait<&$kind<ArrayD<$float>>> for &ArrayD<$float> {
            type Output = $kind<ArrayD<$float>>;
            fn $method(self, other: &$kind<ArrayD<$float>>) -> $kind<ArrayD<$float>> {
                $constant(self.clone()).$method(other)
            }
        }
        impl $trait<$kind<ArrayD<$float>>> for &ArrayD<$float> {
            type Output = $kind<ArrayD<$float>>;
            fn $method(self, other: $kind<ArrayD<$float>>) -> $kind<ArrayD<$float>> {
                $constant(self.clone()).$method(&other)
            }
        }
    };
}

macro_rules! operators_with_arrays {
    ($($kind:ident, $constant:path, $float:ident;)*) => {
        $(
            operator_with_array!($kind, $constant, $float, Add, add);
            operator_with_array!($kind, $constant, $float, Sub, sub);
            operator_with_array!($kind, $constant, $float, Mul, mul);
            operator_with_array!($kind, $constant, $float, Div, div);
        )*
    };
}

operators_with_arrays! {
    Var, Var::detached, f32;
    Var, Var::detached, f64;
    Dual, Dual::new, f32;
    Dual, Dual::new, f64;
}
