//! The form of a program: declarations and values. Its statements have a room of their own.

use std::fmt;
use std::sync::Arc;

use crate::function::Function;
use crate::library::{LibraryCall, LibraryOp};
use crate::operation::Operation;
use crate::types::{Literal, Type};

pub use crate::statement::*;

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
    /// A value: computed once by one [`Stmt::Let`], or the variable of a loop.
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

/// What a program may do with an array parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it (`&Array`).
    Read,
    /// Read and write it (`&mut Array`).
    Write,
}

/// Where an array comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The caller's.
    Param(Access),
    /// The program's own: allocated once per launch, cleared where it is declared. The extents are values of
    /// the index type that depend on shapes and scalar arguments alone.
    Temp(Vec<ValueId>),
    /// What another array held before its last [`Stmt::Push`]; made by autodiff alone, read only.
    Old(ArrayId),
}

/// An array.
#[derive(Clone, Debug)]
pub struct ArrayDecl {
    /// The name, with the path through structs: `w.pos`.
    pub name: String,
    /// The type of its elements.
    pub ty: Type,
    /// The number of dimensions, 0 to 4.
    pub rank: usize,
    /// Where it comes from.
    pub role: Role,
}

/// A scalar parameter.
#[derive(Clone, Debug)]
pub struct ScalarDecl {
    /// The name, with the path through structs.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A parameter of the program, in the order of the (flattened) argument list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// An array.
    Array(ArrayId),
    /// A scalar.
    Scalar(ScalarId),
}

/// A mutable local variable.
#[derive(Clone, Debug)]
pub struct LocalDecl {
    /// The name in the source, or a made-up one.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A label: an enum and one of its variants, by name, so that it is the same in another process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The name of the enum.
    pub family: String,
    /// The name of the variant.
    pub variant: String,
}

impl From<&Label> for Label {
    fn from(label: &Label) -> Label {
        label.clone()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.family, self.variant)
    }
}

/// The index of an element: one value per dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Indices {
    rank: u8,
    values: [ValueId; 4],
}

impl Indices {
    /// The most dimensions an array can have.
    pub const MAX_RANK: usize = 4;

    /// The index with these coordinates; `None` if there are more than four.
    pub fn new(values: &[ValueId]) -> Option<Indices> {
        let mut all = [ValueId(0); 4];
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

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`; wrapping for integers.
    Neg,
    /// `!x`: logical for `bool`, bitwise for integers.
    Not,
    /// `x.abs()`; wrapping for integers.
    Abs,
    /// Square root, correctly rounded.
    Sqrt,
    /// Largest integral value not above.
    Floor,
    /// Smallest integral value not below.
    Ceil,
    /// Nearest integral value, halves away from zero.
    Round,
    /// Integral part.
    Trunc,
}

/// An operation on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; truncating for integers, an error for a zero divisor.
    Div,
    /// `a % b`; the sign of the dividend; an error for a zero divisor.
    Rem,
    /// The remainder that is never negative (`rem_euclid`), integers alone; an error for a zero divisor.
    RemEuclid,
    /// The smaller; of a number and NaN the number; of zeros the negative one.
    Min,
    /// The larger; of a number and NaN the number; of zeros the positive one.
    Max,
    /// `a & b`, integers and `bool`.
    And,
    /// `a | b`, integers and `bool`.
    Or,
    /// `a ^ b`, integers and `bool`.
    Xor,
    /// `a << b`, the count taken modulo the width.
    Shl,
    /// `a >> b`, the count taken modulo the width; arithmetic for signed types.
    Shr,
}

/// A comparison; gives `bool`. Every comparison with NaN is false but `!=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant.
    Literal(Literal),
    /// A scalar parameter.
    Scalar(ScalarId),
    /// The extent of an array in one dimension.
    Dim(ArrayId, u8),
    /// The variable of the loop that introduces this value.
    LoopVar,
    /// What a local variable holds now.
    Get(LocalId),
    /// An operation on one value.
    Unary(Unary, ValueId),
    /// An operation on two values.
    Binary(Binary, ValueId, ValueId),
    /// A comparison.
    Compare(Compare, ValueId, ValueId),
    /// `if c { a } else { b }`, both computed.
    Select(ValueId, ValueId, ValueId),
    /// `a * b + c`, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// Conversion to the value's type: Rust's `as`.
    Cast(ValueId),
    /// An elementary function of one or two arguments (a second one that is not used repeats the first).
    Math(Function, ValueId, ValueId),
    /// A uniform random number in [0, 1) from a seed and a counter, both `i64`.
    Rand(ValueId, ValueId),
    /// An element of an array, as it is now.
    Load(ArrayId, Indices),
}

impl Op {
    /// The values that this one is computed from.
    pub fn operands(&self) -> impl Iterator<Item = ValueId> {
        let mut list = [None; 4];
        match *self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => {}
            Op::Unary(_, a) | Op::Cast(a) => list[0] = Some(a),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Rand(a, b) => {
                (list[0], list[1]) = (Some(a), Some(b))
            }
            Op::Math(f, a, b) => {
                list[0] = Some(a);
                list[1] = (f.arity() == 2).then_some(b);
            }
            Op::Select(a, b, c) | Op::Fma(a, b, c) => list = [Some(a), Some(b), Some(c), None],
            Op::Load(_, index) => index.as_slice().iter().zip(&mut list).for_each(|(v, l)| *l = Some(*v)),
        }
        list.into_iter().flatten()
    }

    /// The same operation with each operand replaced.
    pub fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Op {
        match self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => self,
            Op::Unary(op, a) => Op::Unary(op, f(a)),
            Op::Cast(a) => Op::Cast(f(a)),
            Op::Binary(op, a, b) => Op::Binary(op, f(a), f(b)),
            Op::Compare(op, a, b) => Op::Compare(op, f(a), f(b)),
            Op::Rand(a, b) => Op::Rand(f(a), f(b)),
            Op::Math(op, a, b) => Op::Math(op, f(a), f(b)),
            Op::Select(a, b, c) => Op::Select(f(a), f(b), f(c)),
            Op::Fma(a, b, c) => Op::Fma(f(a), f(b), f(c)),
            Op::Load(array, index) => Op::Load(array, index.map(f)),
        }
    }

    /// Does the operation give the same result wherever it stands? (Loads and local variables do not.)
    pub fn is_pure(&self) -> bool {
        !matches!(self, Op::Load(..) | Op::Get(_))
    }
}

/// A value.
#[derive(Clone, Debug)]
pub struct ValueDecl {
    /// How it is computed.
    pub op: Op,
    /// Its type.
    pub ty: Type,
    /// Its name in the source, where it has one.
    pub name: Option<String>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// All arrays: parameters and temporaries.
    pub arrays: Vec<ArrayDecl>,
    /// All scalar parameters.
    pub scalars: Vec<ScalarDecl>,
    /// All values.
    pub values: Vec<ValueDecl>,
    /// All local variables.
    pub locals: Vec<LocalDecl>,
    /// All labels.
    pub labels: Vec<Label>,
    /// All custom operations.
    pub operations: Vec<Arc<Operation>>,
    /// The number of sequential loops.
    pub loops: u32,
    /// The number of parallel loops.
    pub pars: u32,
    /// The number of regions.
    pub regions: u32,
    /// What may be assumed of the shapes of arrays that it swaps.
    pub swapped: SwappedShapes,
    /// Where runs may begin, beside its beginning.
    pub entered: Entered,
    /// Is it run by a driver that does the host's part? Then regions of its source may stand in it more than once, and
    /// their flags are the program's own. Autodiff alone makes such programs.
    pub driven: bool,
    /// What it does.
    pub body: Block,
}

/// Where runs of a program may begin, beside its beginning. It changes what compiled code can do, not what it computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entered {
    /// At any label, if there is a region that yields: a program without one pays nothing for labels.
    #[default]
    IfItYields,
    /// At any label.
    AtAnyLabel,
}

/// What may be assumed of the shapes of arrays that a program swaps somewhere.
///
/// Only a `swap` that runs proves that two arrays have one shape, and whether it runs is data. So the proof comes from
/// the launch: whoever runs a program compares the shapes of [`Program::swaps`] first, at the start and at every resume,
/// and takes the form of the program that fits them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SwappedShapes {
    /// The launch has found them equal.
    #[default]
    Equal,
    /// Nothing is known.
    Unknown,
}

impl Program {
    /// The declaration of an array.
    pub fn array(&self, id: ArrayId) -> &ArrayDecl {
        &self.arrays[id.index()]
    }

    /// The declaration of a value.
    pub fn value(&self, id: ValueId) -> &ValueDecl {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> Type {
        self.value(id).ty
    }

    /// The operation of a value.
    pub fn op(&self, id: ValueId) -> &Op {
        &self.value(id).op
    }

    /// The constant that a value is, where it is one.
    pub fn literal(&self, id: ValueId) -> Option<Literal> {
        match self.op(id) {
            Op::Literal(literal) => Some(*literal),
            _ => None,
        }
    }

    /// The custom operation of a library call, where it is one.
    pub fn operation(&self, call: &LibraryCall) -> Option<&Arc<Operation>> {
        match call.op {
            LibraryOp::Custom(id) => self.operations.get(id.index()),
            _ => None,
        }
    }

    /// The pairs of arrays that a `swap` of the program exchanges, each once.
    pub fn swaps(&self) -> Vec<(ArrayId, ArrayId)> {
        let mut pairs = Vec::new();
        walk(&self.body, &mut |stmt| {
            if let Stmt::Swap(a, b) = stmt
                && a != b
            {
                pairs.push((*a.min(b), *a.max(b)));
            }
        });
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Is there a region that yields, so that runs may begin at labels?
    pub fn yields(&self) -> bool {
        let mut yields = false;
        walk(&self.body, &mut |stmt| yields |= matches!(stmt, Stmt::Region(r) if r.flag.is_some()));
        yields
    }

    /// The form of the program for launches in which swapped arrays differ in shape.
    pub fn with_unknown_shapes(&self) -> Program {
        Program { swapped: SwappedShapes::Unknown, ..self.clone() }
    }

    /// All identifiers of arrays.
    pub fn array_ids(&self) -> impl Iterator<Item = ArrayId> + use<> {
        (0..self.arrays.len()).map(ArrayId::from_index)
    }

    /// The array with this name.
    pub fn find_array(&self, name: &str) -> Option<ArrayId> {
        self.arrays.iter().position(|a| a.name == name).map(ArrayId::from_index)
    }

    /// The scalar parameter with this name.
    pub fn find_scalar(&self, name: &str) -> Option<ScalarId> {
        self.scalars.iter().position(|s| s.name == name).map(|i| ScalarId(i as u32))
    }

    /// Adds a value that no statement computes yet.
    pub fn add_value(&mut self, op: Op, ty: Type, site: Option<Site>) -> ValueId {
        self.values.push(ValueDecl { op, ty, name: None, site });
        ValueId(self.values.len() as u32 - 1)
    }
}
