//! Element types and literals.

use std::fmt;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `i32`, wrapping.
    I32,
    /// `i64`, wrapping.
    I64,
    /// `u32`, wrapping.
    U32,
    /// `bool`; one byte in arrays.
    Bool,
    /// The index type, `usize` in the language: exact in 64 bits, negative values are errors where they are used.
    Index,
}

impl Type {
    /// Every type that an array can hold.
    pub const ELEMENTS: [Type; 6] = [Type::F32, Type::F64, Type::I32, Type::I64, Type::U32, Type::Bool];

    /// Is this `f32` or `f64`?
    pub fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    /// Is this an integer type, [`Type::Index`] included?
    pub fn is_integer(self) -> bool {
        matches!(self, Type::I32 | Type::I64 | Type::U32 | Type::Index)
    }

    /// Can arrays hold it?
    pub fn is_element(self) -> bool {
        self != Type::Index
    }

    /// The number of bytes that one element takes in an array.
    pub fn size(self) -> usize {
        match self {
            Type::Bool => 1,
            Type::F32 | Type::I32 | Type::U32 => 4,
            Type::F64 | Type::I64 | Type::Index => 8,
        }
    }

    /// The name of the type in the language.
    pub fn name(self) -> &'static str {
        match self {
            Type::F32 => "f32",
            Type::F64 => "f64",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::U32 => "u32",
            Type::Bool => "bool",
            Type::Index => "usize",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A constant: a type and the bits of a value of that type, in the low bytes.
///
/// Equality is equality of bits, so that `0.0` and `-0.0` are different literals and NaNs are comparable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Literal {
    ty: Type,
    bits: u64,
}

impl Literal {
    /// A literal of type `ty` from the low bits of `bits`; what lies above them is cleared.
    pub fn from_bits(ty: Type, bits: u64) -> Literal {
        let bits = match ty {
            Type::Bool => bits & 1,
            Type::F32 | Type::I32 | Type::U32 => bits & 0xffff_ffff,
            Type::F64 | Type::I64 | Type::Index => bits,
        };
        Literal { ty, bits }
    }

    /// The type.
    pub fn ty(self) -> Type {
        self.ty
    }

    /// The bits, in the low bytes.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// `value` rounded to the float type `ty`, or truncated to the integer type `ty`.
    pub fn of(ty: Type, value: f64) -> Literal {
        match ty {
            Type::F32 => Literal::from(value as f32),
            Type::F64 => Literal::from(value),
            Type::I32 => Literal::from(value as i32),
            Type::I64 => Literal::from(value as i64),
            Type::U32 => Literal::from(value as u32),
            Type::Bool => Literal::from(value != 0.0),
            Type::Index => Literal::index(value as i64),
        }
    }

    /// The zero of a type.
    pub fn zero(ty: Type) -> Literal {
        Literal { ty, bits: 0 }
    }

    /// A literal of the index type.
    pub fn index(value: i64) -> Literal {
        Literal { ty: Type::Index, bits: value as u64 }
    }

    /// The value as an `f64`; exact for all types but the 64-bit integers.
    pub fn to_f64(self) -> f64 {
        match self.ty {
            Type::F32 => f64::from(f32::from_bits(self.bits as u32)),
            Type::F64 => f64::from_bits(self.bits),
            Type::I32 => f64::from(self.bits as u32 as i32),
            Type::U32 => self.bits as u32 as f64,
            Type::I64 | Type::Index => self.bits as i64 as f64,
            Type::Bool => self.bits as f64,
        }
    }

    /// The value as an `i64` where the type is an integer or `bool`.
    pub fn to_i64(self) -> Option<i64> {
        match self.ty {
            Type::F32 | Type::F64 => None,
            Type::I32 => Some(i64::from(self.bits as u32 as i32)),
            Type::U32 | Type::I64 | Type::Index | Type::Bool => Some(self.bits as i64),
        }
    }
}

macro_rules! literal_from {
    ($($t:ty => $ty:ident, $v:ident => $bits:expr;)*) => {$(
        impl From<$t> for Literal {
            fn from($v: $t) -> Literal {
                Literal { ty: Type::$ty, bits: $bits }
            }
        }
    )*};
}

literal_from! {
    f32 => F32, v => u64::from(v.to_bits());
    f64 => F64, v => v.to_bits();
    i32 => I32, v => u64::from(v as u32);
    i64 => I64, v => v as u64;
    u32 => U32, v => u64::from(v);
    bool => Bool, v => u64::from(v);
    usize => Index, v => v as u64;
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A NaN that is not the usual one has its bits in the text.
        let odd = |nan: bool, usual: u64| nan && self.bits != usual;
        match self.ty {
            Type::F32 if odd(self.to_f64().is_nan(), u64::from(f32::NAN.to_bits())) => {
                write!(f, "f32::from_bits({})", self.bits)
            }
            Type::F64 if odd(self.to_f64().is_nan(), f64::NAN.to_bits()) => {
                write!(f, "f64::from_bits({})", self.bits)
            }
            Type::F32 => write!(f, "{:?}f32", f32::from_bits(self.bits as u32)),
            Type::F64 => write!(f, "{:?}", f64::from_bits(self.bits)),
            Type::I32 => write!(f, "{}i32", self.bits as u32 as i32),
            Type::I64 => write!(f, "{}i64", self.bits as i64),
            Type::U32 => write!(f, "{}u32", self.bits as u32),
            Type::Bool => write!(f, "{}", self.bits != 0),
            Type::Index => write!(f, "{}", self.bits as i64),
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What index arithmetic gives where its result does not fit (law 4): no index, and less than every one.
pub const OVERFLOW: i64 = i64::MIN;
