//! The statements of an iteration of a parallel loop.
//!
//! A name is defined once and used where its definition is in scope: behind it in its block, and in the blocks inside. What an
//! iteration does in the order of its statements, a target does; only stores that no statement between them can see may change
//! places (`transform::sink_stores`).

use ebbtide_ir::{ArrayId, Combine, Indices, LoopId, Site, Type, ValueId};

use super::expr::Expr;
use super::name::{Name, Ty};

/// Statements in order.
pub(crate) type Body = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stmt {
    /// Computes a value that does not change any more.
    Let {
        name: Name,
        ty: Ty,
        value: Expr,
    },
    /// Brings a variable to life.
    Declare {
        name: Name,
        ty: Ty,
        value: Expr,
    },
    /// Gives a variable another value.
    Assign {
        name: Name,
        ty: Ty,
        value: Expr,
    },
    /// Loads an element; one where a condition does not hold, and the element is not touched then. What lanes have that are not in
    /// a mask is any number.
    Load {
        name: Name,
        ty: Ty,
        element: Element,
        when: Option<Expr>,
    },
    /// Stores an element, or combines it with a value and then with more of them in order, where a condition holds. Lanes that
    /// share the element combine with it one after the other.
    Store {
        element: Element,
        ty: Ty,
        how: Option<Combine>,
        value: Expr,
        more: Vec<Expr>,
        when: Option<Expr>,
        manner: Manner,
    },
    /// Computes the distances between rows of an array, in the narrow type.
    Strides(ArrayId),
    /// Computes the address of an element, which exists.
    Address {
        name: Name,
        ty: Type,
        element: Element,
    },
    /// Adds a term to a reduction of the loop, by its number, where a condition holds.
    Reduce {
        number: usize,
        ty: Ty,
        how: Combine,
        value: Expr,
        when: Option<Expr>,
        vector: usize,
    },
    /// Takes an element for this iteration; a fault where another one has it.
    Claim {
        element: Element,
        taken: ArrayId,
    },
    /// A fault where the operand is what its kind says: the iteration ends. The counters of the loops around it come with an
    /// assertion.
    Fault {
        operand: Expr,
        kind: Fault,
        counters: Vec<Expr>,
        site: Option<Site>,
    },
    /// The iterations of these lanes run one by one instead, unless this holds. Nothing was stored before.
    FallBack {
        unless: Expr,
        lanes: usize,
    },
    /// From here on the first element that does not exist is remembered.
    DeferFaults,
    /// A fault where an element did not exist: the iteration ends.
    RaiseDeferred,
    /// The loop ends where the host wants the launch to end.
    Poll,
    /// Puts a value on the tape of an array, as the element of this iteration: in one of the places that an iteration of the time
    /// loop inside uses, by number, and so many it uses.
    Push {
        array: ArrayId,
        place: u32,
        of: u32,
        value: Expr,
    },
    /// Gives a variable what is on the tape of an array as the element of this iteration.
    Pop {
        array: ArrayId,
        place: u32,
        of: u32,
        name: Name,
        ty: Ty,
    },
    If {
        condition: Expr,
        then: Body,
        otherwise: Body,
    },
    Loop(Loop),
}

/// An element of an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    pub array: ArrayId,
    /// The index in the words of the program, by which analyses know it.
    pub source: Indices,
    pub place: Place,
    pub check: Check,
    pub site: Option<Site>,
}

/// Where an element is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    At(Vec<Expr>),
    /// So far from an address, by dimension.
    From(Name, Vec<i64>),
    /// The first of several, one for each lane.
    Lanes {
        first: Vec<Expr>,
        stride: Stride,
        part: Part,
    },
    /// One for each lane, at an index of its own. All exist.
    Gathered(Vec<Expr>),
}

/// How the elements of neighbouring lanes lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// All lanes have one.
    Same,
    /// Each is right behind the one before.
    Next,
    /// Each is so many elements behind the one before.
    Apart(i64),
    /// By dimension.
    Rows(Vec<i64>),
    /// The same, and the next iteration of the loop around has those right behind, or right before, and so on: a tile.
    Tile { number: usize, rows: Vec<i64>, way: Way },
}

/// Where the elements of the next iteration are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Behind,
    Before,
}

/// Does a vector hold iterations in all its lanes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Tail,
    /// The lanes of a mask, which the statement has: the elements of others are not touched, and need not exist.
    Mask,
}

/// What is done about an element that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// It exists: that is proved.
    Proved,
    /// A fault ends the iteration before it is touched.
    AtOnce,
    /// It reads as one and is not written, and the fault waits for [`Stmt::RaiseDeferred`]; this name says whether it exists.
    Deferred(Name),
    /// A fault ends the iteration, in a place that all such iterations share.
    Aside,
}

/// How an element is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Manner {
    Plain,
    /// Lanes that take no part leave the element alone: others may write it meanwhile.
    LaneByLane,
    /// Others combine with the same element meanwhile.
    Atomic,
    /// By the first thread of the team that runs the iteration, between what all of them read before and after.
    Leader,
    /// It is noted, for a thread that combines all terms of the element in order.
    /// The terms of an iteration follow each other in the table with this number.
    Noted(usize),
    /// Where threads note terms, it is noted in a bucket of a table, for the thread that combines all terms of the elements of
    /// that bucket in order; where one thread runs the loop, it is combined at once.
    Bucket(usize),
    /// It is added to at once, and its terms are counted: each run of them is a sum of its own (law 8).
    Counted,
    /// The same, and with it elements that are so far away, which have got as many terms as it.
    CountedFor(Vec<i64>),
    /// It is added to at once; another update of its iteration counts for it.
    CountedElsewhere,
}

/// What goes wrong in an iteration, besides elements that do not exist or are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This value would be an integer divided by the operand, which is zero.
    Division(ValueId),
    /// The same, where faults are deferred: one that waits comes first.
    DivisionAfterDeferred(ValueId),
    /// A bound of a loop, the operand, is no number.
    Overflow,
}

/// A loop inside an iteration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loop {
    pub id: LoopId,
    /// What its own names end in.
    pub number: usize,
    pub kind: LoopKind,
    /// Must it look now and then whether the host wants the launch to end?
    pub polls: bool,
    /// It is left after an iteration in which this holds.
    pub until: Option<Expr>,
    /// The locals to which it adds sums, in the order of law 8.
    pub sums: Vec<(Name, Ty)>,
    /// Are these chains instead, to which its iterations add one after the other?
    pub chained: bool,
    pub body: Body,
    /// What lanes do in iterations that some of them alone have: the loop itself has those that all of them have then.
    pub partly: Option<Box<Partly>>,
    /// What is done around its iterations, where it has any.
    pub ends: Option<Box<Ends>>,
    /// What its iterations compute alike in all lanes, for several of them at once.
    pub ahead: Option<Box<Ahead>>,
    /// Its iterations in vectors along the lanes of its sums; steps that change the body come before the one that makes them.
    pub wide: Option<Wide>,
}

/// Iterations before and behind those that all lanes have. One lane has all of them, and so this range is the range of all that any
/// lane has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Partly {
    pub from: Expr,
    pub to: Expr,
    /// An iteration, of which the lanes that have it take part. Its names are those of the loop's own body.
    pub body: Body,
}

/// What is done before the first iteration of a counted loop and behind the last one, with the variable of the loop as it is there.
/// Names of the loop's own body are computed here by themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ends {
    pub first: Body,
    pub last: Body,
}

/// Values of as many iterations of a loop as a vector has lanes, computed before the first of these: each iteration computes the
/// same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ahead {
    pub ty: Ty,
    pub values: Vec<Name>,
    /// It has the names of the loop's own body.
    pub body: Body,
}

/// Iterations of a loop with sums as vectors of so many lanes: a vector adds to as many of the 16 lanes of a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wide {
    pub lanes: usize,
    pub whole: Body,
    /// The first lanes of one, for the iterations that are left.
    pub tail: Body,
}

/// How a loop counts or continues.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoopKind {
    Counted { variable: Name, from: Expr, to: Expr },
    While { head: Body, condition: Expr },
    Forever,
}

impl Element {
    /// Its index, or that of the first of several; empty where it is found from an address.
    pub fn index(&self) -> &[Expr] {
        match &self.place {
            Place::At(index) | Place::Gathered(index) | Place::Lanes { first: index, .. } => index,
            Place::From(..) => &[],
        }
    }

    /// The same, to be changed.
    pub fn index_mut(&mut self) -> &mut [Expr] {
        match &mut self.place {
            Place::At(index) | Place::Gathered(index) | Place::Lanes { first: index, .. } => index,
            Place::From(..) => &mut [],
        }
    }
}

impl Stmt {
    /// The blocks inside, in order.
    pub fn blocks(&self) -> Vec<&Body> {
        match self {
            Stmt::If { then, otherwise, .. } => vec![then, otherwise],
            Stmt::Loop(Loop { kind: LoopKind::While { head, .. }, body, .. }) => vec![head, body],
            Stmt::Loop(l) => {
                let ends = l.ends.iter().flat_map(|ends| [&ends.first, &ends.last]);
                [&l.body]
                    .into_iter()
                    .chain(l.partly.as_ref().map(|partly| &partly.body))
                    .chain(ends)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The blocks inside, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Body> {
        match self {
            Stmt::If { then, otherwise, .. } => vec![then, otherwise],
            Stmt::Loop(Loop { kind: LoopKind::While { head, .. }, body, .. }) => vec![head, body],
            Stmt::Loop(l) => {
                let ends = l.ends.iter_mut().flat_map(|ends| [&mut ends.first, &mut ends.last]);
                let partly = l.partly.as_mut().map(|partly| &mut partly.body);
                [&mut l.body].into_iter().chain(partly).chain(ends).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The expressions of the statement itself, to be changed.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Stmt::Let { value, .. }
            | Stmt::Declare { value, .. }
            | Stmt::Assign { value, .. }
            | Stmt::Push { value, .. } => vec![value],
            Stmt::Load { element, when, .. } => element.index_mut().iter_mut().chain(when).collect(),
            Stmt::Store { element, value, more, when, .. } => {
                element.index_mut().iter_mut().chain([value]).chain(more).chain(when).collect()
            }
            Stmt::Address { element, .. } | Stmt::Claim { element, .. } => {
                element.index_mut().iter_mut().collect()
            }
            Stmt::Reduce { value, when, .. } => [value].into_iter().chain(when).collect(),
            Stmt::Fault { operand, counters, .. } => [operand].into_iter().chain(counters).collect(),
            Stmt::If { condition, .. } | Stmt::FallBack { unless: condition, .. } => vec![condition],
            Stmt::Loop(l) => {
                let of_kind = match &mut l.kind {
                    LoopKind::Counted { from, to, .. } => vec![from, to],
                    LoopKind::While { condition, .. } => vec![condition],
                    LoopKind::Forever => Vec::new(),
                };
                let partly = l.partly.as_mut().map(|partly| [&mut partly.from, &mut partly.to]);
                of_kind.into_iter().chain(partly.into_iter().flatten()).chain(&mut l.until).collect()
            }
            Stmt::Strides(_) | Stmt::DeferFaults | Stmt::RaiseDeferred | Stmt::Poll | Stmt::Pop { .. } => {
                Vec::new()
            }
        }
    }

    /// The element that it touches.
    pub fn element_mut(&mut self) -> Option<&mut Element> {
        match self {
            Stmt::Load { element, .. }
            | Stmt::Store { element, .. }
            | Stmt::Address { element, .. }
            | Stmt::Claim { element, .. } => Some(element),
            _ => None,
        }
    }
}

/// Visits all statements, to change them: those in blocks after the one that they are in. The depth of recursion is that of
/// nesting in the source.
pub(crate) fn visit_mut(body: &mut [Stmt], visit: &mut dyn FnMut(&mut Stmt)) {
    for stmt in body {
        visit(stmt);
        stmt.blocks_mut().into_iter().for_each(|block| visit_mut(block, visit));
    }
}

/// Visits all expressions and their parts, to change them.
pub(crate) fn visit_exprs_mut(body: &mut [Stmt], visit: &mut dyn FnMut(&mut Expr)) {
    visit_mut(body, &mut |stmt| stmt.exprs_mut().into_iter().for_each(|e| e.visit_mut(visit)));
}
