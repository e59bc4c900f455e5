//! The types that arrays can hold.

use std::fmt;

use ebbtide_ir::{Literal, Type};

/// A type that arrays can hold.
pub trait Element: Copy + PartialEq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
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
