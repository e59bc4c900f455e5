//! Sketches: programs as trees of names, which can be lowered, printed and made smaller.
//!
//! Everything is referred to by name, so that any part can be cut out: what then lacks a declaration does not lower.

use ebbtide_ir::{Access, Binary, Combine, Compare, Function, Literal, ReverseHint, Type, Unary};

/// An extent of the arrays of a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// The length of most arrays.
    N,
    /// Another length.
    M,
    /// One more than the number of time steps.
    Times,
    /// Always so many.
    Fixed(usize),
}

/// The lengths that a case runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// For [`Extent::N`].
    pub n: usize,
    /// For [`Extent::M`].
    pub m: usize,
    /// The number of time steps.
    pub steps: usize,
}

impl Sizes {
    /// The length of an extent.
    pub fn of(self, extent: Extent) -> usize {
        match extent {
            Extent::N => self.n,
            Extent::M => self.m,
            Extent::Times => self.steps + 1,
            Extent::Fixed(n) => n,
        }
    }
}

/// An array parameter or a temporary.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayOf {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub ty: Type,
    /// Its extents.
    pub extents: Vec<Extent>,
    /// What is done with it; temporaries are written.
    pub access: Access,
}

/// A scalar parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarOf {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A program.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sketch {
    /// Its name.
    pub name: String,
    /// Its array parameters.
    pub arrays: Vec<ArrayOf>,
    /// Its scalar parameters.
    pub scalars: Vec<ScalarOf>,
    /// What it does.
    pub body: Vec<Line>,
    /// The programs that it calls; their arrays are bound by position.
    pub callees: Vec<Sketch>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A constant.
    Literal(Literal),
    /// A scalar parameter, a `let`, a loop variable or a local variable.
    Name(String),
    /// The length of an extent.
    Extent(Extent),
    /// An element.
    Load(String, Vec<Term>),
    /// An operation on one value.
    Unary(Unary, Box<Term>),
    /// An operation on two values.
    Binary(Binary, Box<Term>, Box<Term>),
    /// A comparison.
    Compare(Compare, Box<Term>, Box<Term>),
    /// `select(c, a, b)`.
    Select(Box<Term>, Box<Term>, Box<Term>),
    /// `a.mul_add(b, c)`.
    Fma(Box<Term>, Box<Term>, Box<Term>),
    /// `a as ty`.
    Cast(Type, Box<Term>),
    /// An elementary function.
    Math(Function, Vec<Term>),
    /// `rand(seed, index)`, a float of this type.
    Rand(Type, Box<Term>, Box<Term>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `let name = …`.
    Let(String, Term),
    /// `let mut name = …`.
    Mut(String, Term),
    /// `name = …`.
    Set(String, Term),
    /// `array[index] = …`.
    Store(String, Vec<Term>, Term),
    /// `array[index] += …` and its kin.
    Update(Combine, String, Vec<Term>, Term),
    /// `scatter_unique(array, index, …)`.
    Unique(String, Vec<Term>, Term),
    /// A branch.
    If(Term, Vec<Line>, Vec<Line>),
    /// `for name in from..to`.
    For {
        /// The loop variable.
        name: String,
        /// The first value.
        from: Term,
        /// The value after the last.
        to: Term,
        /// How it is reversed.
        hint: Option<ReverseHint>,
        /// What it repeats.
        body: Vec<Line>,
        /// The condition of a last `break`.
        until: Option<Term>,
    },
    /// `let (total, …) = sum(from..to, |name| { … (value, …) })`, inside an iteration.
    Sum {
        /// What is bound, one name for each number of the terms.
        totals: Vec<String>,
        /// The type of the numbers.
        ty: Type,
        /// The variable of the range.
        name: String,
        /// The first value.
        from: Term,
        /// The value after the last.
        to: Term,
        /// What computes a term, sums of its own included.
        body: Vec<Line>,
        /// The numbers of a term.
        values: Vec<Term>,
    },
    /// `while condition`.
    While {
        /// The condition.
        condition: Term,
        /// What it repeats.
        body: Vec<Line>,
    },
    /// `loop`.
    Loop {
        /// What it repeats.
        body: Vec<Line>,
        /// The condition of the last `break`.
        until: Term,
    },
    /// A parallel loop.
    Par {
        /// Its variables and their ranges.
        ranges: Vec<(String, Term, Term)>,
        /// What each iteration does.
        body: Vec<Line>,
    },
    /// A labelled region.
    Region {
        /// The variant of its label.
        label: String,
        /// Its flag.
        flag: String,
        /// Does it put back what it wrote when it yields?
        undo: bool,
        /// What it does.
        body: Vec<Line>,
    },
    /// Calls one of the callees with these arrays and scalars.
    Call(usize, Vec<String>, Vec<Term>),
    /// `swap(a, b)`.
    Swap(String, String),
    /// `fill(a, x)`.
    Fill(String, Term),
    /// `copy(from, to)`.
    Copy(String, String),
    /// `matmul(a, b, c)`.
    Matmul(String, String, String),
    /// `scan(x, out)`.
    Scan(String, String),
    /// `compact(flags, out, count)`.
    Compact(String, String, String),
    /// `let mut name = ArrayR::<ty>::zeros(extents)`.
    Temp(ArrayOf),
}

impl Term {
    /// A constant of the index type.
    pub fn index(i: i64) -> Term {
        Term::Literal(Literal::index(i))
    }

    /// A constant of a type.
    pub fn number(ty: Type, x: f64) -> Term {
        Term::Literal(Literal::of(ty, x))
    }

    /// A name.
    pub fn name(name: &str) -> Term {
        Term::Name(name.to_string())
    }

    /// An operation on two terms.
    pub fn binary(op: Binary, a: Term, b: Term) -> Term {
        Term::Binary(op, Box::new(a), Box::new(b))
    }

    /// A comparison of two terms.
    pub fn compare(op: Compare, a: Term, b: Term) -> Term {
        Term::Compare(op, Box::new(a), Box::new(b))
    }

    /// An operation on one term.
    pub fn unary(op: Unary, a: Term) -> Term {
        Term::Unary(op, Box::new(a))
    }

    /// A cast.
    pub fn cast(self, ty: Type) -> Term {
        Term::Cast(ty, Box::new(self))
    }

    /// The terms inside this one.
    pub fn parts(&self) -> Vec<&Term> {
        match self {
            Term::Literal(_) | Term::Name(_) | Term::Extent(_) => Vec::new(),
            Term::Load(_, list) | Term::Math(_, list) => list.iter().collect(),
            Term::Unary(_, a) | Term::Cast(_, a) => vec![a],
            Term::Binary(_, a, b) | Term::Compare(_, a, b) | Term::Rand(_, a, b) => vec![a, b],
            Term::Select(a, b, c) | Term::Fma(a, b, c) => vec![a, b, c],
        }
    }

    /// The terms inside this one, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Term> {
        match self {
            Term::Literal(_) | Term::Name(_) | Term::Extent(_) => Vec::new(),
            Term::Load(_, list) | Term::Math(_, list) => list.iter_mut().collect(),
            Term::Unary(_, a) | Term::Cast(_, a) => vec![a],
            Term::Binary(_, a, b) | Term::Compare(_, a, b) | Term::Rand(_, a, b) => vec![a, b],
            Term::Select(a, b, c) | Term::Fma(a, b, c) => vec![a, b, c],
        }
    }
}

impl Line {
    /// The terms of the statement itself, to be changed.
    pub fn terms_mut(&mut self) -> Vec<&mut Term> {
        match self {
            Line::Let(_, t) | Line::Mut(_, t) | Line::Set(_, t) | Line::Fill(_, t) => vec![t],
            Line::Store(_, index, t) | Line::Update(_, _, index, t) | Line::Unique(_, index, t) => {
                index.iter_mut().chain([t]).collect()
            }
            Line::If(t, ..) | Line::While { condition: t, .. } | Line::Loop { until: t, .. } => vec![t],
            Line::For { from, to, until, .. } => [from, to].into_iter().chain(until).collect(),
            Line::Sum { from, to, values, .. } => [from, to].into_iter().chain(values).collect(),
            Line::Par { ranges, .. } => ranges.iter_mut().flat_map(|(_, from, to)| [from, to]).collect(),
            Line::Call(_, _, terms) => terms.iter_mut().collect(),
            Line::Region { .. }
            | Line::Swap(..)
            | Line::Copy(..)
            | Line::Matmul(..)
            | Line::Scan(..)
            | Line::Compact(..)
            | Line::Temp(_) => Vec::new(),
        }
    }

    /// The blocks inside the statement, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Line>> {
        match self {
            Line::If(_, then, otherwise) => vec![then, otherwise],
            Line::For { body, .. }
            | Line::Sum { body, .. }
            | Line::While { body, .. }
            | Line::Loop { body, .. }
            | Line::Par { body, .. }
            | Line::Region { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }

    /// The blocks inside the statement.
    pub fn blocks(&self) -> Vec<&Vec<Line>> {
        match self {
            Line::If(_, then, otherwise) => vec![then, otherwise],
            Line::For { body, .. }
            | Line::Sum { body, .. }
            | Line::While { body, .. }
            | Line::Loop { body, .. }
            | Line::Par { body, .. }
            | Line::Region { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }
}

impl Sketch {
    /// The number of statements, those of callees included.
    pub fn len(&self) -> usize {
        fn count(block: &[Line]) -> usize {
            block.iter().map(|line| 1 + line.blocks().iter().map(|b| count(b)).sum::<usize>()).sum()
        }
        count(&self.body) + self.callees.iter().map(Sketch::len).sum::<usize>()
    }

    /// Does it do nothing?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array parameter with this name.
    pub fn array(&self, name: &str) -> Option<&ArrayOf> {
        self.arrays.iter().find(|a| a.name == name)
    }
}
