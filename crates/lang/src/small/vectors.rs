//! Vectors of two to four components.

use std::any::Any;
use std::array::from_fn;
use std::ops::{Add, AddAssign, Div, DivAssign, Index, IndexMut, Mul, MulAssign, Neg, Sub, SubAssign};

use ebbtide_ir::{Literal, LocalId, Type, ValueId};

use super::{Sequence, Value, constant};
use crate::cx::Cx;
use crate::handle::Argument;
use crate::scalar::{Float, Scalar};
use crate::value::{Expr, Local, Readable};

macro_rules! vectors {
    ($($(#[$doc:meta])* $name:ident, $n:literal, $($field:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C)]
        pub struct $name<T> {
            $(#[doc = concat!("The component `", stringify!($field), "`.")] pub $field: T,)*
        }

        impl<T> $name<T> {
            /// The vector with these components.
            pub const fn new($($field: T),*) -> $name<T> {
                $name { $($field),* }
            }

            /// The components in order.
            pub fn to_array(self) -> [T; $n] {
                [$(self.$field),*]
            }

            /// The vector with these components.
            pub fn from_array(components: [T; $n]) -> $name<T> {
                let [$($field),*] = components;
                $name { $($field),* }
            }
        }

        /// What stands for a literal of a program: `Vec3 { x, ..v }`.
        impl<T: Scalar> $name<T> {
            #[doc(hidden)]
            pub fn this_struct_needs_derive_value() -> $name<Option<Expr<T>>> {
                $name::splat(None)
            }
        }

        impl<T: Scalar> $name<Option<Expr<T>>> {
            $(#[doc(hidden)]
            pub fn $field(mut self, component: Expr<T>) -> Self {
                self.$field = Some(component);
                self
            })*

            // rustc has checked that no component is missing.
            #[doc(hidden)]
            pub fn __done(self, cx: &Cx) -> Expr<$name<T>> {
                Expr::new($name { $($field: self.$field.unwrap_or_else(|| crate::emit::zero(cx))),* })
            }

            #[doc(hidden)]
            pub fn __with(self, rest: Expr<$name<T>>) -> Expr<$name<T>> {
                Expr::new($name { $($field: self.$field.unwrap_or(rest.$field)),* })
            }
        }

        impl<T: Copy> $name<T> {
            /// The vector with this number in all components.
            pub const fn splat(value: T) -> $name<T> {
                $name { $($field: value),* }
            }
        }

        impl<T: Float> $name<T> {
            /// The zero vector.
            pub fn zero() -> $name<T> {
                $name::splat(T::of(0.0))
            }

            /// The sum of the products of components, added in order.
            pub fn dot(self, other: $name<T>) -> T {
                let (a, b) = (self.to_array(), other.to_array());
                (1..$n).fold(a[0] * b[0], |sum, k| sum + a[k] * b[k])
            }

            /// The square of the length.
            pub fn norm_squared(self) -> T {
                self.dot(self)
            }

            /// The length. Its derivative is zero at the zero vector (law 13).
            pub fn norm(self) -> T {
                self.dot(self).sqrt()
            }

            /// The vector of length 1 in this direction: NaN of the zero vector, which has none.
            pub fn normalize(self) -> $name<T> {
                self / self.norm()
            }
        }

        impl<T: Copy + Add<Output = T>> Add for $name<T> {
            type Output = $name<T>;
            fn add(self, other: $name<T>) -> $name<T> {
                $name { $($field: self.$field + other.$field),* }
            }
        }

        impl<T: Copy + Sub<Output = T>> Sub for $name<T> {
            type Output = $name<T>;
            fn sub(self, other: $name<T>) -> $name<T> {
                $name { $($field: self.$field - other.$field),* }
            }
        }

        impl<T: Copy + Mul<Output = T>> Mul<T> for $name<T> {
            type Output = $name<T>;
            fn mul(self, factor: T) -> $name<T> {
                $name { $($field: self.$field * factor),* }
            }
        }

        impl<T: Copy + Div<Output = T>> Div<T> for $name<T> {
            type Output = $name<T>;
            fn div(self, divisor: T) -> $name<T> {
                $name { $($field: self.$field / divisor),* }
            }
        }

        impl<T: Copy + Neg<Output = T>> Neg for $name<T> {
            type Output = $name<T>;
            fn neg(self) -> $name<T> {
                $name { $($field: -self.$field),* }
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

        impl<T: Copy + Mul<Output = T>> MulAssign<T> for $name<T> {
            fn mul_assign(&mut self, factor: T) {
                *self = *self * factor;
            }
        }

        impl<T: Copy + Div<Output = T>> DivAssign<T> for $name<T> {
            fn div_assign(&mut self, divisor: T) {
                *self = *self / divisor;
            }
        }

        vectors! { @ $name f32 f64 i32 i64 u32 }

        impl<T> Index<usize> for $name<T> {
            type Output = T;
            fn index(&self, k: usize) -> &T {
                [$(&self.$field),*][k]
            }
        }

        impl<T> IndexMut<usize> for $name<T> {
            fn index_mut(&mut self, k: usize) -> &mut T {
                let mut all = [$(&mut self.$field),*];
                all.swap(0, k);
                let [component, ..] = all;
                component
            }
        }

        impl<T: Scalar> Value for $name<T> {
            type Given = Expr<$name<T>>;
            type Exprs = $name<Expr<T>>;
            type Locals = $name<Local<T>>;

            fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> $name<Expr<T>> {
                $name::from_array(from_fn(|_| Expr::new(next(T::TYPE))))
            }

            fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> $name<Local<T>> {
                $name::from_array(from_fn(|_| Local::new(next(T::TYPE))))
            }

            fn each_expr(parts: &$name<Expr<T>>, visit: &mut dyn FnMut(ValueId)) {
                $(visit(parts.$field.id);)*
            }

            fn each_local(parts: &$name<Local<T>>, visit: &mut dyn FnMut(LocalId)) {
                $(visit(parts.$field.id);)*
            }

            fn names(name: &str, visit: &mut dyn FnMut(String)) {
                $(visit(format!(concat!("{}.", stringify!($field)), name));)*
            }

            fn literals(self, visit: &mut dyn FnMut(Literal)) {
                $(visit(Scalar::literal(self.$field));)*
            }

            fn of_literals(next: &mut dyn FnMut() -> Literal) -> $name<T> {
                $name::from_array(<[T; $n]>::of_literals(next))
            }

            fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any)) {
                $(visit(&self.$field);)*
            }

            fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any)) {
                $(visit(&mut self.$field);)*
            }
        }

        impl<T: Scalar> Sequence for $name<T> {
            type Item = T;

            fn items(parts: &$name<Expr<T>>) -> Vec<Expr<T>> {
                parts.to_array().to_vec()
            }

            fn variables(parts: &$name<Local<T>>) -> Vec<Local<T>> {
                parts.to_array().to_vec()
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
            pub fn __new($($field: Expr<T>),*) -> Expr<$name<T>> {
                Expr::new($name { $($field),* })
            }

            pub fn __splat(value: Expr<T>) -> Expr<$name<T>> {
                Expr::new($name { $($field: value),* })
            }

            #[track_caller]
            pub fn __zero() -> Expr<$name<T>> {
                let cx = &Cx::current();
                crate::emit::zero(cx)
            }

            pub fn __from_array(components: Expr<[T; $n]>) -> Expr<$name<T>> {
                Expr::new($name::from_array(components.id))
            }
        }
    )*};
    (@ $name:ident $($t:ty)*) => {$(
        impl Mul<$name<$t>> for $t {
            type Output = $name<$t>;
            fn mul(self, vector: $name<$t>) -> $name<$t> {
                $name::from_array(vector.to_array().map(|component| self * component))
            }
        }
    )*};
}

vectors! {
    /// A vector of two components.
    Vec2, 2, x y;
    /// A vector of three components.
    Vec3, 3, x y z;
    /// A vector of four components.
    Vec4, 4, x y z w;
}

impl<T: Float> Vec3<T> {
    /// The vector product.
    pub fn cross(self, other: Vec3<T>) -> Vec3<T> {
        Vec3 {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }
}
