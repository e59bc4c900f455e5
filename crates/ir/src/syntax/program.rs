//! The form of a program: declarations, and the tree of statements over them.

mod library;
mod operation;
mod printed_lines;
mod rules;
mod statement;
mod writes;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::error::Fault;
use super::ids::{ArrayId, Indices, ScalarId, Site, ValueId};
use super::op::{Binary, Op};
use super::types::{Literal, Type};

pub use library::{Assign, Layout, LibraryCall, LibraryOp, MATMUL_CHUNK, Way};
pub(crate) use library::{Extents, extents};
pub use operation::{HostArg, HostFunction, Operation, Work};
pub use printed_lines::{Format, Piece, Print, Stream};
pub use rules::{Bound, Rule, Ruled, Rules, Saved};
pub use statement::*;

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
    /// A tape of single elements, of rank 1, on which parallel loops put what they overwrite, one loop behind the other; made by
    /// autodiff alone. The array says how many elements it holds. Its length is what the driver has made room for.
    Tape(ArrayId),
}

/// An array.
#[derive(Clone, Debug)]
pub struct ArrayDecl {
    /// The name, with the path through structs: `w.pos`.
    pub name: String,
    /// The type of its elements.
    pub ty: Type,
    /// The number of dimensions, 0 to 6.
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

/// A label: an enum and one of its variants, by name, so that it is the same in another process; or a number.
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

impl Label {
    /// The family of labels that are numbers.
    pub const NUMBERS: &'static str = "i32";
}

impl From<i32> for Label {
    fn from(number: i32) -> Label {
        Label { family: Label::NUMBERS.to_string(), variant: number.to_string() }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.family == Label::NUMBERS {
            return f.write_str(&self.variant);
        }
        write!(f, "{}::{}", self.family, self.variant)
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

/// What an assertion says when it fails. The assertion itself is an integer division by its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// The division, in the program as written.
    pub value: ValueId,
    /// What it says.
    pub text: String,
    /// Where it stands in the source: generated programs know it by this.
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
    /// All assertions: what they say when they fail.
    pub assertions: Vec<Assertion>,
    /// All lines that it prints where it is interpreted.
    pub prints: Vec<Print>,
    /// What may be assumed of the shapes of arrays that it swaps.
    pub swapped: SwappedShapes,
    /// Parameters that the launch has found equal in shape, besides those that are swapped: see [`crate::alike_shapes`].
    pub alike: Vec<(ArrayId, ArrayId)>,
    /// Where runs may begin, beside its beginning.
    pub entered: Entered,
    /// Is it run by a driver that does the host's part? Then regions of its source may stand in it more than once, and
    /// their flags are the program's own. Autodiff alone makes such programs.
    pub driven: bool,
    /// Temporaries that hold anything when they are declared, and not zeros: the program writes each of their elements before it
    /// reads it. Autodiff alone makes such programs.
    pub undefined: BTreeSet<ArrayId>,
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
    /// How many extents each array has in the table that compiled code reads: four, or as many as there are dimensions.
    pub fn extents_per_array(&self) -> usize {
        let most = self.arrays.iter().map(|array| array.rank).max().unwrap_or(0);
        most.clamp(4, Indices::MAX_RANK)
    }

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

    /// Can computing the value fail, whatever the data?
    pub(crate) fn may_fail(&self, v: ValueId) -> bool {
        match *self.op(v) {
            Op::Load(..) => true,
            Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) if !self.ty(v).is_float() => {
                self.literal(b).and_then(Literal::to_i64).is_none_or(|divisor| divisor == 0)
            }
            _ => false,
        }
    }

    /// The fault of an integer division by zero at this place of the source, where a run was at this position: perhaps an
    /// assertion that fails.
    pub fn division_fault(&self, site: Option<Site>, position: impl Into<Box<str>>) -> Fault {
        let texts = self.assertion_texts(&site);
        match texts.is_empty() {
            // A call may assert several things at its one place.
            false => Fault::Assertion { text: texts.join(", or "), position: position.into(), site },
            true => Fault::DivisionByZero { site },
        }
    }

    /// What the assertions at a place of the source say, each once.
    pub fn assertion_texts(&self, site: &Option<Site>) -> Vec<&str> {
        let here = |assertion: &&Assertion| assertion.site.is_some() && assertion.site == *site;
        let mut texts: Vec<&str> = Vec::new();
        for assertion in self.assertions.iter().filter(here) {
            if !texts.contains(&&*assertion.text) {
                texts.push(&assertion.text);
            }
        }
        texts
    }

    /// The line that a branch prints, where it is one that prints.
    pub fn print(&self, branch: &Branch) -> Option<&Print> {
        let print = self.prints.iter().find(|print| print.condition == branch.condition)?;
        (self.literal(branch.condition) == Some(Literal::from(false))).then_some(print)
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
        Program { swapped: SwappedShapes::Unknown, alike: Vec::new(), ..self.clone() }
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
