//! The types that arrays can hold.

use std::fmt;

use ebbtide_ir::{Literal, Type};

/// What an array holds at one index: a scalar, or a small value that is made of scalars of one type, as a vector is.
///
/// In memory an array of small values is an array of their scalars with [`Item::EXTENTS`] as its last dimensions.
///
/// # Safety
///
/// - *Layout*: a value is the scalars of its extents one after the other, last dimension fastest, without padding, and
///   aligned as one of them is.
/// - *Validity*: any scalars make a value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the element type of an array",
    label = "not an element type",
    note = "elements are `f32 f64 i32 i64 u32 bool`, vectors and matrices of them (`Vec3<f64>`, `Mat2<f32>`) and `[f64; 4]`"
)]
pub unsafe trait Item: Copy + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The type of its scalars.
    type Scalar: Element;

    /// The extents of the scalars in it; none for a scalar.
    const EXTENTS: &'static [usize];
}

/// The number of scalars in an item.
pub(crate) const fn components<T: Item>() -> usize {
    let (mut n, mut k) = (1, 0);
    while k < T::EXTENTS.len() {
        n *= T::EXTENTS[k];
        k += 1;
    }
    n
}

// SAFETY (*Layout*, *Validity*): arrays of Rust lie in memory as their elements do, one after the other.
unsafe impl<T: Element, const N: usize> Item for [T; N] {
    type Scalar = T;
    const EXTENTS: &'static [usize] = &[N];
}

/// A scalar that arrays can hold.
pub trait Element: Item<Scalar = Self> + sealed::Sealed {
    /// Its name in the program.
    const TYPE: Type;

    /// The value as a literal.
    fn to_literal(self) -> Literal;

    /// The value of a literal of this type.
    fn from_literal(literal: Literal) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty => $ty:ident, $bits:ident => $from:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        // SAFETY (*Layout*, *Validity*): it is one scalar itself.
        unsafe impl Item for $t {
            type Scalar = $t;
            const EXTENTS: &'static [usize] = &[];
        }
        impl Element for $t {
            const TYPE: Type = Type::$ty;

            fn to_literal(self) -> Literal {
                Literal::from(self)
            }

            fn from_literal(literal: Literal) -> $t {
                let $bits = literal.bits();
                $from
            }
        }
    )*};
}

elements! {
    f32 => F32, b => f32::from_bits(b as u32);
    f64 => F64, b => f64::from_bits(b);
    i32 => I32, b => b as i32;
    i64 => I64, b => b as i64;
    u32 => U32, b => b as u32;
    bool => Bool, b => b != 0;
}
