use std::fmt;

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `bool`, one byte each
    Bool,
}

/// Rust's name, the name in a snapshot file and the size of each type.
const TABLE: [(Dtype, &str, safetensors::Dtype, usize); 8] = [
    (Dtype::F32, "f32", safetensors::Dtype::F32, 4),
    (Dtype::F64, "f64", safetensors::Dtype::F64, 8),
    (Dtype::I32, "i32", safetensors::Dtype::I32, 4),
    (Dtype::I64, "i64", safetensors::Dtype::I64, 8),
    (Dtype::U8, "u8", safetensors::Dtype::U8, 1),
    (Dtype::U32, "u32", safetensors::Dtype::U32, 4),
    (Dtype::U64, "u64", safetensors::Dtype::U64, 8),
    (Dtype::Bool, "bool", safetensors::Dtype::BOOL, 1),
];

impl Dtype {
    /// The size of one element in bytes.
    pub fn size(self) -> usize {
        self.row().3
    }

    pub(crate) fn in_file(self) -> safetensors::Dtype {
        self.row().2
    }

    pub(crate) fn from_file(dtype: safetensors::Dtype) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == dtype).map(|row| row.0)
    }

    fn row(self) -> &'static (Dtype, &'static str, safetensors::Dtype, usize) {
        &TABLE[self as usize]
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().1)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that arrays of a [`State`](crate::State) can have as elements.
pub trait Element: Copy + sealed::Sealed {
    /// The type as a value.
    const DTYPE: Dtype;

    /// Writes `values` as little-endian bytes; `bytes` has exactly the room for them.
    #[doc(hidden)]
    fn encode(values: &[Self], bytes: &mut [u8]);

    /// Reads `values` from little-endian bytes of exactly their size.
    #[doc(hidden)]
    fn decode(bytes: &[u8], values: &mut [Self]);

    /// Any value, to fill room with before it is decoded into.
    #[doc(hidden)]
    fn zero() -> Self;
}

macro_rules! elements {
    ($($t:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: Dtype = Dtype::$dtype;

            fn encode(values: &[Self], bytes: &mut [u8]) {
                for (chunk, value) in bytes.chunks_exact_mut(size_of::<$t>()).zip(values) {
                    chunk.copy_from_slice(&value.to_le_bytes());
                }
            }

            fn decode(bytes: &[u8], values: &mut [Self]) {
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$t>() }>();
                for (value, chunk) in values.iter_mut().zip(chunks) {
                    *value = <$t>::from_le_bytes(*chunk);
                }
            }

            fn zero() -> Self {
                <$t>::default()
            }
        }
    )*};
}

elements!(f32 => F32, f64 => F64, i32 => I32, i64 => I64, u8 => U8, u32 => U32, u64 => U64);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: Dtype = Dtype::Bool;

    fn encode(values: &[Self], bytes: &mut [u8]) {
        for (byte, &value) in bytes.iter_mut().zip(values) {
            *byte = u8::from(value);
        }
    }

    fn decode(bytes: &[u8], values: &mut [Self]) {
        for (value, &byte) in values.iter_mut().zip(bytes) {
            *value = byte != 0;
        }
    }

    fn zero() -> Self {
        false
    }
}
