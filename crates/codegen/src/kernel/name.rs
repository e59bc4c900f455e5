//! The names of variables, and the types that they have.

use std::fmt;

use ebbtide_ir::{ArrayId, LocalId, LoopId, Type, ValueId};

/// A variable of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub variable: Variable,
    /// Which of the iterations side by side it belongs to, where it is not the same for all of them.
    pub side: Option<usize>,
}

/// What a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// A value of the program: it is computed once.
    Value(ValueId),
    /// A local variable of the program.
    Local(LocalId),
    /// The condition under which the statements of a branch take effect.
    Mask(usize),
    /// Whether an element exists.
    Exists(usize),
    /// The address of an element.
    Address(usize),
    /// What an element held before it is combined with a value.
    Old(usize),
    /// What an iteration of a loop hands on to the next one: an element.
    Handed(usize),
    /// The element of an array that an iteration holds in a variable.
    Held(ArrayId),
    /// A value from outside the loop, in the narrow type.
    Bound(ValueId),
    /// An element as it lies in memory.
    Loaded(usize),
    /// How many iterations of a loop around the parallel one are finished.
    Finished(LoopId),
    /// How many lanes of a vector are iterations, where not all are.
    Tail,
    /// How many terms of ordered sums an iteration notes in the table with this number.
    Terms(usize),
}

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    One(Type),
    /// An index of 32 bits.
    Narrow,
    /// A number for each of several lanes.
    Vector(Type, usize),
    /// A truth value for each of several lanes that hold numbers of this type.
    Mask(Type, usize),
    /// Where an element of this type is.
    Address(Type),
}

impl Name {
    pub fn value(v: ValueId) -> Name {
        Variable::Value(v).into()
    }

    pub fn local(local: LocalId) -> Name {
        Variable::Local(local).into()
    }
}

impl From<Variable> for Name {
    fn from(variable: Variable) -> Name {
        Name { variable, side: None }
    }
}

/// The same name in every text: that of a target and that for people.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.variable {
            Variable::Value(v) => write!(f, "v{}", v.index())?,
            Variable::Local(local) => write!(f, "l{}", local.index())?,
            Variable::Mask(n) => write!(f, "m{n}")?,
            Variable::Exists(n) => write!(f, "ok{n}")?,
            Variable::Address(n) => write!(f, "p{n}")?,
            Variable::Old(n) => write!(f, "old{n}")?,
            Variable::Handed(n) => write!(f, "hand{n}")?,
            Variable::Held(array) => write!(f, "h{}", array.index())?,
            Variable::Bound(v) => write!(f, "n{}", v.index())?,
            Variable::Loaded(n) => write!(f, "in{n}")?,
            Variable::Finished(l) => write!(f, "pass{}", l.index())?,
            Variable::Tail => f.write_str("tail")?,
            Variable::Terms(table) => write!(f, "count{table}")?,
        }
        self.side.map_or(Ok(()), |side| write!(f, "_{side}"))
    }
}

/// The integers that are as wide as numbers of this type: lanes have indices as such.
pub(crate) fn as_wide(ty: Type) -> Type {
    if ty.size() == 4 { Type::I32 } else { Type::I64 }
}

impl Ty {
    /// The type of truth values that go with numbers of this type.
    pub fn truth(self) -> Ty {
        match self {
            Ty::Vector(ty, lanes) | Ty::Mask(ty, lanes) => Ty::Mask(ty, lanes),
            Ty::One(_) | Ty::Narrow | Ty::Address(_) => Ty::One(Type::Bool),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::One(ty) => f.write_str(ty.name()),
            Ty::Narrow => f.write_str("narrow"),
            Ty::Vector(ty, lanes) => write!(f, "{} x {lanes}", ty.name()),
            Ty::Mask(_, lanes) => write!(f, "bool x {lanes}"),
            Ty::Address(ty) => write!(f, "*{}", ty.name()),
        }
    }
}

/// Numbers that tell names apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fresh(usize);

impl Fresh {
    /// A number that no other name has.
    pub fn next(&mut self) -> usize {
        self.0 += 1;
        self.0
    }
}
