//! The interval of a row in which the interior form of iterations is right, as data: what is computed before the innermost loop,
//! and what narrows `lo..hi` from the whole row.
//!
//! `analysis::interior` finds it. Everything in it is a sum `coefficient · j + base`, with `j` the innermost variable and `base`
//! the same for all `j`.

use ebbtide_ir::ValueId;

use super::index_expr::IndexExpr;

/// The interval of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// What is computed before the innermost loop, in order.
    pub before: Vec<Before>,
    /// What narrows it, in order.
    pub narrowings: Vec<Narrowing>,
    /// Which rows it must be computed for.
    pub rows: Rows,
}

/// What is computed before the innermost loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// A value of the program; zero where it divides by zero, since the interior is empty then.
    Value(ValueId),
    /// The base of a remainder in the middle of the row.
    Wrapped { v: ValueId, base: IndexExpr, modulus: IndexExpr, way: Way },
}

/// Does a sum grow with the innermost variable?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// Which rows of an iteration space have to be looked at to know an interval that is right for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The first and the last along each dimension: everything is a sum.
    Corners,
    /// Each has an interval of its own.
    Each,
}

/// The values of loop variables at a corner of their ranges.
pub(crate) type Scope = Vec<(ValueId, Corner)>;

/// Ranges of loops, each from one index to another.
pub(crate) type Ranges = Vec<[IndexExpr; 2]>;

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Corner {
    First(IndexExpr),
    /// The value before this one.
    Last(IndexExpr),
}

impl Corner {
    fn contains(&self, part: &IndexExpr) -> bool {
        let (Corner::First(e) | Corner::Last(e)) = self;
        e.contains(part)
    }
}

/// Something that narrows the interval `lo..hi` of the innermost variable `j`, or empties it. Sums are coefficients of `j` with
/// tame bases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Narrowing {
    /// To where a divisor, the same for all `j`, is not zero.
    NotZero(ValueId),
    /// To where the sum is not negative.
    NotNegative((i64, IndexExpr)),
    /// To where the sum is an index below this extent; not at all where one of the ranges is empty, which are the same for all
    /// iterations: then nobody asks.
    Within(Scope, (i64, IndexExpr), IndexExpr, Ranges),
    /// To the larger side of where `j` is not this.
    Away(IndexExpr),
    /// To nothing.
    Empty,
    /// To where this multiple of `j` is tame.
    TameMultiple(i64),
    /// To where the expression is tame.
    Tame(Scope, IndexExpr),
}

impl Narrowing {
    /// The loop variables that it looks at by the corners of their ranges.
    pub fn scope(&self) -> &[(ValueId, Corner)] {
        match self {
            Narrowing::Within(scope, ..) | Narrowing::Tame(scope, _) => scope,
            _ => &[],
        }
    }

    /// Does the condition hold for all values that it speaks of?
    pub fn all_values(&self, holds: &dyn Fn(ValueId) -> bool) -> bool {
        let fine = |e: &IndexExpr| !e.any(&|part| matches!(part, IndexExpr::Value(v) if !holds(*v)));
        let own = match self {
            Narrowing::NotZero(v) => holds(*v),
            Narrowing::NotNegative((_, e)) | Narrowing::Away(e) | Narrowing::Tame(_, e) => fine(e),
            Narrowing::Within(_, (_, e), extent, ranges) => {
                fine(e) && fine(extent) && ranges.iter().flatten().all(fine)
            }
            Narrowing::Empty | Narrowing::TameMultiple(_) => true,
        };
        let of = |corner: &Corner| match corner {
            Corner::First(e) | Corner::Last(e) => fine(e),
        };
        own && self.scope().iter().all(|(_, corner)| of(corner))
    }

    /// Is this expression a part of it?
    pub fn contains(&self, part: &IndexExpr) -> bool {
        let in_scope = |scope: &Scope| scope.iter().any(|(_, corner)| corner.contains(part));
        match self {
            Narrowing::NotZero(_) | Narrowing::Empty | Narrowing::TameMultiple(_) => false,
            Narrowing::NotNegative((_, e)) | Narrowing::Away(e) => e.contains(part),
            // Where a range may be empty it may never be computed.
            Narrowing::Within(scope, (_, e), extent, ranges) => {
                ranges.is_empty() && (in_scope(scope) || e.contains(part) || extent.contains(part))
            }
            Narrowing::Tame(scope, e) => in_scope(scope) || e.contains(part),
        }
    }
}
