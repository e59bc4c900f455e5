//! Square matrices of two to four rows, stored row after row.

use std::any::Any;
use std::array::from_fn;
use std::ops::{Add, AddAssign, Div, DivAssign, Index, IndexMut, Mul, MulAssign, Neg, Sub, SubAssign};

use ebbtide_ir::{Literal, LocalId, Type, ValueId};

use super::vectors::{Vec2, Vec3, Vec4};
use super::{Sequence, Value, constant};
use crate::cx::Cx;
use crate::handle::Argument;
use crate::scalar::{Float, Scalar};
use crate::value::{Expr, Local, Readable};

macro_rules! matrices {
    ($($(#[$doc:meta])* $name:ident, $row:ident, $n:literal, $nn:literal, $($element:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C)]
        pub struct $name<T> {
            /// The rows.
            pub rows: [$row<T>; $n],
        }

        impl<T> $name<T> {
            /// The matrix with these elements, row after row.
            #[allow(clippy::too_many_arguments)]
            pub fn new($($element: T),*) -> $name<T> {
                $name::from_elements([$($element),*])
            }

            /// The matrix with these elements, row after row.
            pub fn from_elements(elements: [T; $nn]) -> $name<T> {
                let mut next = elements.into_iter();
                let mut element = || match next.next() {
                    Some(element) => element,
                    None => unreachable!("there are as many elements as places"),
                };
                $name { rows: from_fn(|_| $row::from_array(from_fn(|_| element()))) }
            }
        }

        impl<T: Copy> $name<T> {
            /// The elements, row after row.
            pub fn to_elements(self) -> [T; $nn] {
                from_fn(|k| self.rows[k / $n].to_array()[k % $n])
            }

            /// The matrix with these rows.
            pub fn from_rows(rows: [$row<T>; $n]) -> $name<T> {
                $name { rows }
            }

            /// The matrix with rows and columns exchanged.
            pub fn transpose(self) -> $name<T> {
                $name { rows: from_fn(|i| $row::from_array(from_fn(|j| self.rows[j].to_array()[i]))) }
            }
        }

        impl<T: Float> $name<T> {
            /// The matrix of zeros.
            pub fn zero() -> $name<T> {
                $name { rows: [$row::zero(); $n] }
            }

            /// The identity.
            pub fn identity() -> $name<T> {
                $name::diagonal($row::splat(T::of(1.0)))
            }

            /// The matrix with these numbers on its diagonal.
            pub fn diagonal(d: $row<T>) -> $name<T> {
                let d = d.to_array();
                $name::from_elements(from_fn(|k| if k / $n == k % $n { d[k % $n] } else { T::of(0.0) }))
            }

            /// The sum of the diagonal.
            pub fn trace(self) -> T {
                (1..$n).fold(self[[0, 0]], |sum, k| sum + self[[k, k]])
            }
        }

        impl<T: Copy + Add<Output = T>> Add for $name<T> {
            type Output = $name<T>;
            fn add(self, other: $name<T>) -> $name<T> {
                $name { rows: from_fn(|i| self.rows[i] + other.rows[i]) }
            }
        }

        impl<T: Copy + Sub<Output = T>> Sub for $name<T> {
            type Output = $name<T>;
            fn sub(self, other: $name<T>) -> $name<T> {
                $name { rows: from_fn(|i| self.rows[i] - other.rows[i]) }
            }
        }

        impl<T: Copy + Neg<Output = T>> Neg for $name<T> {
            type Output = $name<T>;
            fn neg(self) -> $name<T> {
                $name { rows: self.rows.map(|row| -row) }
            }
        }

        impl<T: Copy + Mul<Output = T>> Mul<T> for $name<T> {
            type Output = $name<T>;
            fn mul(self, factor: T) -> $name<T> {
                $name { rows: self.rows.map(|row| row * factor) }
            }
        }

        impl<T: Copy + Div<Output = T>> Div<T> for $name<T> {
            type Output = $name<T>;
            fn div(self, divisor: T) -> $name<T> {
                $name { rows: self.rows.map(|row| row / divisor) }
            }
        }

        impl<T: Float> Mul<$row<T>> for $name<T> {
            type Output = $row<T>;
            fn mul(self, vector: $row<T>) -> $row<T> {
                $row::from_array(self.rows.map(|row| row.dot(vector)))
            }
        }

        impl<T: Float> Mul for $name<T> {
            type Output = $name<T>;
            fn mul(self, other: $name<T>) -> $name<T> {
                let columns = other.transpose().rows;
                $name { rows: self.rows.map(|row| $row::from_array(columns.map(|column| row.dot(column)))) }
            }
        }

        impl<T: Copy + Add<Output = T>> AddAssign for $name<T> {
            fn add_assign(&mut self, other: $name<T>) {
                *self = *self + other;
            }
        }

        impl<T: Copy + Sub<Output = T>> SubAssign for $name<T> {
            fn sub_assign(&mut self, other: $name<T>) {
                *self = *self - other;
            }
        }

        impl<T: Copy + Div<Output = T>> DivAssign<T> for $name<T> {
            fn div_assign(&mut self, divisor: T) {
                *self = *self / divisor;
            }
        }

        impl<T: Copy + Mul<Output = T>> MulAssign<T> for $name<T> {
            fn mul_assign(&mut self, factor: T) {
                *self = *self * factor;
            }
        }

        matrices! { @ $name f32 f64 }

        impl<T> Index<[usize; 2]> for $name<T> {
            type Output = T;
            fn index(&self, [i, j]: [usize; 2]) -> &T {
                &self.rows[i][j]
            }
        }

        impl<T> IndexMut<[usize; 2]> for $name<T> {
            fn index_mut(&mut self, [i, j]: [usize; 2]) -> &mut T {
                &mut self.rows[i][j]
            }
        }

        impl<T> Index<usize> for $name<T> {
            type Output = $row<T>;
            fn index(&self, i: usize) -> &$row<T> {
                &self.rows[i]
            }
        }

        impl<T> IndexMut<usize> for $name<T> {
            fn index_mut(&mut self, i: usize) -> &mut $row<T> {
                &mut self.rows[i]
            }
        }

        impl<T: Float> $row<T> {
            /// The matrix of the products of components: a column times a row.
            pub fn outer(self, other: $row<T>) -> $name<T> {
                $name { rows: self.to_array().map(|a| $row::from_array(other.to_array().map(|b| a * b))) }
            }
        }

        impl<T: Scalar> Value for $name<T> {
            type Given = Expr<$name<T>>;
            type Exprs = $name<Expr<T>>;
            type Locals = $name<Local<T>>;

            fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> $name<Expr<T>> {
                $name { rows: from_fn(|_| <$row<T> as Value>::exprs(next)) }
            }

            fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> $name<Local<T>> {
                $name { rows: from_fn(|_| <$row<T> as Value>::locals(next)) }
            }

            fn each_expr(parts: &$name<Expr<T>>, visit: &mut dyn FnMut(ValueId)) {
                parts.to_elements().iter().for_each(|element| visit(element.id));
            }

            fn each_local(parts: &$name<Local<T>>, visit: &mut dyn FnMut(LocalId)) {
                parts.to_elements().iter().for_each(|element| visit(element.id));
            }

            fn names(name: &str, visit: &mut dyn FnMut(String)) {
                (0..$nn).for_each(|k| visit(format!("{name}[{}, {}]", k / $n, k % $n)));
            }

            fn literals(self, visit: &mut dyn FnMut(Literal)) {
                self.to_elements().into_iter().for_each(|element| visit(Scalar::literal(element)));
            }

            fn of_literals(next: &mut dyn FnMut() -> Literal) -> $name<T> {
                $name { rows: Value::of_literals(next) }
            }

            fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any)) {
                self.rows.scalars(visit);
            }

            fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any)) {
                self.rows.scalars_mut(visit);
            }
        }

        impl<T: Scalar> Sequence for $name<T> {
            type Item = $row<T>;

            fn items(parts: &$name<Expr<T>>) -> Vec<Expr<$row<T>>> {
                parts.rows.iter().map(|row| Expr::new(*row)).collect()
            }

            fn variables(parts: &$name<Local<T>>) -> Vec<Local<$row<T>>> {
                parts.rows.iter().map(|row| Local::new(*row)).collect()
            }
        }

        impl<T: Scalar> Readable for $name<T> {
            type Elem = $name<T>;

            #[track_caller]
            fn read(&self, cx: &Cx) -> Expr<$name<T>> {
                constant(cx, *self)
            }
        }

        impl<T: Scalar> Argument<Expr<$name<T>>> for $name<T> {
            #[track_caller]
            fn pass(&self, cx: &Cx) -> Expr<$name<T>> {
                constant(cx, *self)
            }
        }

        #[doc(hidden)]
        #[allow(clippy::too_many_arguments)]
        impl<T: Scalar> $name<T> {
            pub fn __new($($element: Expr<T>),*) -> Expr<$name<T>> {
                Expr::new($name::from_elements([$($element),*]))
            }

            pub fn __from_rows(rows: Expr<[$row<T>; $n]>) -> Expr<$name<T>> {
                Expr::new($name { rows: rows.id.map(|row| row.id) })
            }

            #[track_caller]
            pub fn __zero() -> Expr<$name<T>> {
                let cx = &Cx::current();
                crate::emit::zero(cx)
            }

            #[track_caller]
            pub fn __diagonal(d: Expr<$row<T>>) -> Expr<$name<T>> {
                let cx = &Cx::current();
                let (zero, d): (Expr<T>, _) = (crate::emit::zero(cx), d.id.to_array());
                let elements = from_fn(|k| if k / $n == k % $n { d[k % $n] } else { zero });
                Expr::new($name::from_elements(elements))
            }
        }

        #[doc(hidden)]
        impl<T: Float> $name<T> {
            #[track_caller]
            pub fn __identity() -> Expr<$name<T>> {
                let cx = &Cx::current();
                constant(cx, $name::identity())
            }
        }
    )*};
    (@ $name:ident $($t:ty)*) => {$(
        impl Mul<$name<$t>> for $t {
            type Output = $name<$t>;
            fn mul(self, matrix: $name<$t>) -> $name<$t> {
                $name::from_elements(matrix.to_elements().map(|element| self * element))
            }
        }
    )*};
}

matrices! {
    /// A matrix of two rows and two columns.
    Mat2, Vec2, 2, 4, a b c d;
    /// A matrix of three rows and three columns.
    Mat3, Vec3, 3, 9, a b c d e f g h i;
    /// A matrix of four rows and four columns.
    Mat4, Vec4, 4, 16, a b c d e f g h i j k l m n o p;
}

impl<T: Float> Mat2<T> {
    /// The determinant.
    pub fn determinant(self) -> T {
        let [a, b, c, d] = self.to_elements();
        a * d - b * c
    }

    /// The inverse, by the adjugate; of a singular matrix what IEEE arithmetic makes of it.
    pub fn inverse(self) -> Mat2<T> {
        let [a, b, c, d] = self.to_elements();
        let scale = T::of(1.0) / self.determinant();
        Mat2::new(d * scale, -b * scale, -c * scale, a * scale)
    }
}

impl<T: Float> Mat3<T> {
    /// The determinant, by the first row.
    pub fn determinant(self) -> T {
        let [a, b, c] = self.rows;
        a.dot(b.cross(c))
    }

    /// The inverse, by the adjugate; of a singular matrix what IEEE arithmetic makes of it.
    pub fn inverse(self) -> Mat3<T> {
        let [a, b, c] = self.rows;
        let scale = T::of(1.0) / self.determinant();
        Mat3 { rows: [b.cross(c) * scale, c.cross(a) * scale, a.cross(b) * scale] }.transpose()
    }
}
