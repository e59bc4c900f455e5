//! Identifiers: places in the tables of a program, indices of elements, and places in the user's source.

use std::fmt;
use std::sync::Arc;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The place in the program's table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier of the place `index` in the program's table.
            pub fn from_index(index: usize) -> $name {
                $name(index as u32)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

ids! {
    /// An array: a parameter or a temporary.
    ArrayId;
    /// A scalar parameter.
    ScalarId;
    /// A value: computed once by one `Stmt::Let`, or the variable of a loop.
    ValueId;
    /// A mutable local variable.
    LocalId;
    /// A sequential loop.
    LoopId;
    /// A parallel loop.
    ParId;
    /// A label of regions.
    LabelId;
    /// A region: one occurrence of a label.
    RegionId;
    /// A write: a `Stmt::Store`, `Update`, `Fill` or `Copy`. [`Program::number_writes`](crate::Program::number_writes) gives
    /// it.
    WriteId;
    /// A custom operation.
    OperationId;
}

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The index of an element: one value per dimension.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Indices {
    rank: u8,
    values: [ValueId; Indices::MAX_RANK],
}

impl Indices {
    /// The most dimensions an array can have: four, and two of the matrices that are its elements.
    pub const MAX_RANK: usize = 6;

    /// The index with these coordinates; `None` if there are more than [`Indices::MAX_RANK`].
    pub fn new(values: &[ValueId]) -> Option<Indices> {
        let mut all = [ValueId(0); Indices::MAX_RANK];
        all.get_mut(..values.len())?.copy_from_slice(values);
        Some(Indices { rank: values.len() as u8, values: all })
    }

    /// The coordinates.
    pub fn as_slice(&self) -> &[ValueId] {
        &self.values[..self.rank as usize]
    }

    /// The same index with each coordinate replaced.
    pub fn map(mut self, mut f: impl FnMut(ValueId) -> ValueId) -> Indices {
        for value in &mut self.values[..self.rank as usize] {
            *value = f(*value);
        }
        self
    }
}

impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
