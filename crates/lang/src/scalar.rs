//! The scalar types of the language and what can be done with each.

use std::any::Any;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use ebbtide_ir::{Literal, LocalId, Type, ValueId};

use crate::small::{Summand, Value};
use crate::value::{CastTarget, Expr, Readable};

/// A type of scalars: `f32 f64 i32 i64 u32 bool`, and `usize`, the index type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar type of the language",
    label = "not a scalar type of the language",
    note = "scalars are `f32 f64 i32 i64 u32 bool`, and `usize` for indices; arrays and structs of arrays are \
            passed by `&` or `&mut`"
)]
pub trait Scalar:
    Value<Given = Expr<Self>, Exprs = ValueId, Locals = LocalId> + Readable<Elem = Self>
{
    /// The type in the program.
    const TYPE: Type;

    /// The value as a constant of a program.
    fn literal(self) -> Literal;

    /// The value of a constant of this type.
    fn of_literal(literal: Literal) -> Option<Self>;
}

/// A number: every scalar but `bool`.
#[diagnostic::on_unimplemented(
    message = "this needs a number, not `{Self}`",
    label = "this is `{Self}`",
    note = "arithmetic is for `f32 f64 i32 i64 u32 usize`; write `select(c, 1.0, 0.0)` to count with a `bool`"
)]
pub trait Number: Scalar + CastTarget + Summand {
    /// Keeps the smaller of `self` and `other`.
    fn min_assign(&mut self, other: Self);

    /// Keeps the larger of `self` and `other`.
    fn max_assign(&mut self, other: Self);
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Number for $t {
            fn min_assign(&mut self, other: $t) {
                *self = (*self).min(other);
            }

            fn max_assign(&mut self, other: $t) {
                *self = (*self).max(other);
            }
        }
    )*};
}

numbers! { f32 f64 i32 i64 u32 usize }

/// A number that can be negative.
#[diagnostic::on_unimplemented(
    message = "this needs a signed number, not `{Self}`",
    label = "this is `{Self}`",
    note = "cast it first, as in `x as i64`"
)]
pub trait Signed: Number {}

/// An integer: `i32 i64 u32 usize`.
#[diagnostic::on_unimplemented(
    message = "this needs an integer, not `{Self}`",
    label = "this is `{Self}`",
    note = "cast it first, as in `x as i64`"
)]
pub trait Integer: Number {}

/// What has bits or truth: integers and `bool`.
#[diagnostic::on_unimplemented(
    message = "this needs a `bool` or an integer, not `{Self}`",
    label = "this is `{Self}`"
)]
pub trait Bits: Scalar {}

/// The type of the elements of an array: every scalar but `usize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element type of an array",
    label = "not an element type",
    note = "elements are `f32 f64 i32 i64 u32 bool`; store indices as `i32` or `i64` and cast them where they \
            index: `u[idx[i] as usize]`"
)]
pub trait Element: Item<Scalar = Self> + Scalar + ebbtide_runtime::Element {}

/// What an array holds at one index: a scalar but `usize`, a vector, a matrix, or an array of a fixed length of scalars.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element type of an array",
    label = "not an element type",
    note = "elements are `f32 f64 i32 i64 u32 bool`, vectors and matrices of them (`Vec3<f64>`, `Mat2<f32>`) and `[f64; 4]`; \
            store indices as `i32` or `i64` and cast them where they index: `u[idx[i] as usize]`; of a struct make one array \
            for each field"
)]
pub trait Item: Value + ebbtide_runtime::Item {
    /// That it is part of the language: see [`Known`](crate::Known).
    #[doc(hidden)]
    const IS_KNOWN: bool = true;
}

macro_rules! items {
    ($($t:ty)*) => { $(impl Item for $t {})* };
}

items! { f32 f64 i32 i64 u32 bool }

macro_rules! small_items {
    ($($t:ident)*) => { $(impl<T: Element> Item for crate::small::$t<T> {})* };
}

small_items! { Vec2 Vec3 Vec4 Mat2 Mat3 Mat4 }

impl<T: Element, const N: usize> Item for [T; N] {}

macro_rules! scalars {
    ($($t:ty: $ty:ident, $from:expr, $($kind:ident)*;)*) => {$(
        impl Value for $t {
            type Given = Expr<$t>;
            type Exprs = ValueId;
            type Locals = LocalId;

            fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> ValueId {
                next(Type::$ty)
            }

            fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> LocalId {
                next(Type::$ty)
            }

            fn each_expr(parts: &ValueId, visit: &mut dyn FnMut(ValueId)) {
                visit(*parts);
            }

            fn each_local(parts: &LocalId, visit: &mut dyn FnMut(LocalId)) {
                visit(*parts);
            }

            fn names(name: &str, visit: &mut dyn FnMut(String)) {
                visit(name.to_string());
            }

            fn literals(self, visit: &mut dyn FnMut(Literal)) {
                visit(self.literal());
            }

            fn of_literals(next: &mut dyn FnMut() -> Literal) -> $t {
                match <$t>::of_literal(next()) {
                    Some(value) => value,
                    None => unreachable!("the literal has the type"),
                }
            }

            fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any)) {
                visit(self);
            }

            fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any)) {
                visit(self);
            }
        }

        impl Scalar for $t {
            const TYPE: Type = Type::$ty;

            fn literal(self) -> Literal {
                Literal::from(self)
            }

            fn of_literal(literal: Literal) -> Option<$t> {
                let from: fn(u64) -> $t = $from;
                (literal.ty() == Type::$ty).then(|| from(literal.bits()))
            }
        }
        $(impl $kind for $t {})*
    )*};
}

scalars! {
    f32: F32, |bits| f32::from_bits(bits as u32), Signed Element;
    f64: F64, f64::from_bits, Signed Element;
    i32: I32, |bits| bits as i32, Signed Integer Bits Element;
    i64: I64, |bits| bits as i64, Signed Integer Bits Element;
    u32: U32, |bits| bits as u32, Integer Bits Element;
    bool: Bool, |bits| bits != 0, Bits Element;
    // What a host cannot count as negative is zero to it.
    usize: Index, |bits| (bits as i64).max(0) as usize, Integer Bits;
}

macro_rules! float_methods {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*);)*) => {
        /// `f32` or `f64`: programs and functions may be generic over it.
        ///
        /// A constant in generic code is written `T::of(0.5)`. The methods are std's own, so that a generic
        /// [`#[func]`](https://docs.rs/ebbtide) is plain Rust as well.
        #[diagnostic::on_unimplemented(
            message = "this needs a float, not `{Self}`",
            label = "this is `{Self}`",
            note = "cast it first, as in `x as f64`"
        )]
        pub trait Float:
            Signed + Element + PartialOrd
            + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
            + Rem<Output = Self> + Neg<Output = Self>
            + AddAssign + SubAssign + MulAssign + DivAssign + RemAssign
        {
            /// `value` in this type, rounded to nearest.
            fn of(value: f64) -> Self;

            /// The error function, as programs compute it.
            #[must_use]
            fn erf(self) -> Self {
                crate::host::erf(self)
            }

            $($(#[$doc])* #[must_use] fn $name(self $(, $arg: $ty)*) -> Self;)*
        }

        impl Float for f32 {
            fn of(value: f64) -> f32 {
                value as f32
            }

            $(fn $name(self $(, $arg: float_methods!(@ $ty, f32))*) -> f32 {
                f32::$name(self $(, $arg)*)
            })*
        }

        impl Float for f64 {
            fn of(value: f64) -> f64 {
                value
            }

            $(fn $name(self $(, $arg: float_methods!(@ $ty, f64))*) -> f64 {
                f64::$name(self $(, $arg)*)
            })*
        }
    };
    (@ Self, $t:ty) => { $t };
    (@ $ty:ty, $t:ty) => { $ty };
}

float_methods! {
    /// The sine.
    sin();
    /// The cosine.
    cos();
    /// The tangent.
    tan();
    /// The arc sine.
    asin();
    /// The arc cosine.
    acos();
    /// The arc tangent.
    atan();
    /// The angle of the point (`x`, `self`).
    atan2(x: Self);
    /// The hyperbolic sine.
    sinh();
    /// The hyperbolic cosine.
    cosh();
    /// The hyperbolic tangent.
    tanh();
    /// e to the power `self`.
    exp();
    /// 2 to the power `self`.
    exp2();
    /// `exp(self) - 1`, exact for small arguments.
    exp_m1();
    /// The natural logarithm.
    ln();
    /// `ln(1 + self)`, exact for small arguments.
    ln_1p();
    /// The logarithm to base 2.
    log2();
    /// The logarithm to base 10.
    log10();
    /// `self` to the power `e`.
    powf(e: Self);
    /// `self` to an integer power.
    powi(e: i32);
    /// The square root.
    sqrt();
    /// The cube root.
    cbrt();
    /// The absolute value.
    abs();
    /// The smaller of two; of a number and NaN the number.
    min(other: Self);
    /// The larger of two; of a number and NaN the number.
    max(other: Self);
    /// The largest integral value not above.
    floor();
    /// The smallest integral value not below.
    ceil();
    /// The nearest integral value, halves away from zero.
    round();
    /// The integral part.
    trunc();
    /// 1 with the sign of `self`; NaN of NaN.
    signum();
    /// `self`, but not below `low` nor above `high`.
    clamp(low: Self, high: Self);
    /// The length of the vector (`self`, `other`).
    hypot(other: Self);
    /// `self * a + b`, rounded once.
    mul_add(a: Self, b: Self);
}
