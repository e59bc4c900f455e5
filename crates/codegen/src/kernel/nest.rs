//! The loops around the iterations of a parallel loop, as a tree.
//!
//! A domain of several ranges is *rows* of iterations: the innermost range runs along a row, the others count rows. Loops share
//! rows, columns or leaves of sums between threads, go through the rows of a share, and through the iterations of a row. A row
//! has an interval in which the interior form of iterations is right; the careful form runs before and behind it.
//!
//! [`verify`] says what is right, [`show`] prints it for people, and `interpret` is what it means, for tests.

#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod show;
pub(crate) mod verify;

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Range, Type};

use super::bounds_test::Test;
use super::interval::{Before, Interval, Narrowing};
use super::stmt::{Body, Element, Stmt};
use super::work::Work;
use crate::kernel::term_runs::TermRuns;

/// A parallel loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nest {
    /// Its ranges in the order in which the nest goes through them, outermost first.
    pub ranges: Vec<Range>,
    pub order: Order,
    /// The sums, minima and maxima over its iterations, by number: how terms are combined, and their type.
    pub reductions: Vec<(Combine, Type)>,
    pub body: Vec<Node>,
    /// It, where threads share it in buckets; the body is empty then.
    pub buckets: Option<Buckets>,
    /// The arrays to which iterations add terms that are counted (law 8), by number.
    pub counted: TermRuns,
}

/// A loop that combines at shared elements in the order of iterations. Where that pays, threads note terms in buckets: a batch of
/// iterations is dealt out in order; then each thread combines the terms in its own buckets, those of the first thread first.
/// Elsewhere one thread runs all iterations, and combines at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buckets {
    /// The arrays, and how terms are combined with their elements.
    pub tables: Vec<(ArrayId, Combine)>,
    /// How much an iteration computes, and how many terms it notes.
    pub work: Work,
    pub terms: Work,
    /// The bytes of the largest term.
    pub bytes: usize,
    /// A row, or a piece of one.
    pub row: Row,
    /// The label behind a batch, where an iteration that meets a fault continues.
    pub exit: usize,
}

/// The order of the ranges of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    OfProgram,
    /// Two ranges have changed places: short rows are gone through by columns.
    Exchanged,
}

/// A piece of a nest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    For(For),
    Row(Row),
    Iterations(Iterations),
    /// Where an iteration that meets a fault continues: the thread that runs it leaves the loops.
    Label(usize),
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct For {
    pub kind: Kind,
    pub over: Over,
    pub body: Vec<Node>,
}

/// Who runs the iterations of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One thread, one after the other.
    Seq,
    /// So many at a time, in the lanes of vectors.
    Lanes(usize),
    /// Each thread takes a share, where there are so many that it pays: an iteration of the parallel loop computes so much.
    Threads(Work),
}

/// What a loop goes through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Over {
    /// The rows of the domain, or of the share or leaf that the loop around it gives.
    Rows(Interiors),
    /// The columns of all rows. Shares begin at multiples of a number.
    Columns { aligned: usize },
    /// The leaves of sums (law 8): some rows each, or a piece of a row.
    Leaves,
    /// All iterations, of which each keeps its terms of sums; then those of leaves are added. A window of iterations at a time, of
    /// which each thread takes a run.
    Terms,
    /// What is left of the interval of a row, so many iterations at a time as long as there are so many. It pays to print so many
    /// of its iterations as one.
    Interior { step: usize, unrolled: usize },
    /// Where at least so many are left, the first ones up to that whose element begins a line of memory: fewer than a vector has
    /// lanes, in one vector. The element is that of the first lane.
    Peeled { stored: Element, least: usize },
    /// What is left of the interval then: fewer iterations than a vector has lanes, in one vector.
    Tail,
}

/// How it is found out which iterations of rows are in the interior.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interiors {
    /// Each row asks for itself.
    OfEach,
    /// The rows at the corners of the domain tell whether all iterations are; where not, each row asks for itself.
    AtCorners,
    /// The same. Where all are, and the rows of these arrays lie one behind the other, all rows are taken as one.
    AtCornersOrAsOne(BTreeSet<ArrayId>),
}

/// A row: the careful form up to the interval, `inside` in it, and the careful form for what is left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub interval: Interval,
    /// Rows of fewer iterations have no interior, but those that are taken as one.
    pub least: usize,
    pub careful: Body,
    /// Loops that follow one another: each begins where the one before it ended.
    pub inside: Vec<For>,
    /// Several rows at a time, as long as there are so many.
    pub together: Option<Together>,
    /// What is known of all rows where tests hold that are asked once.
    pub proved: Option<Proved>,
}

impl Row {
    /// Do iterations of the interval run one by one where a test does not hold?
    pub fn falls_back(&self) -> bool {
        let tests = |body: &Body| body.iter().any(|stmt| matches!(stmt, Stmt::FallBack { .. }));
        let mut nodes = self.inside.iter().flat_map(|l| &l.body);
        nodes.any(|node| matches!(node, Node::Iterations(it) if tests(&it.body)))
    }
}

/// Rows all of whose accesses are in bounds where these tests hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Proved {
    pub tests: BTreeSet<Test>,
    /// What narrows the interval then: accesses do not.
    pub narrowings: Vec<Narrowing>,
    /// What iterations do then before the interval and behind it, where the interval is not all rows.
    pub ends: Option<Ends>,
}

/// The ends of rows in vectors: a first one that may reach into the interval, and as many behind it as are left.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ends {
    pub lanes: usize,
    /// Rows of fewer iterations are taken one iteration at a time.
    pub least: usize,
    /// What is computed before the innermost loop besides what the interval has.
    pub before: Vec<Before>,
    /// The first lanes of a vector of iterations, which may be all.
    pub body: Body,
}

/// Rows that are taken together, where this interval is the whole of each row of the domain: its ends tell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Together {
    pub rows: usize,
    /// Rows of fewer iterations are taken one by one.
    pub least: usize,
    pub interval: Interval,
    /// What is computed before the innermost loop. The names of what differs between rows have the number of the row.
    pub before: Body,
    /// Loops that follow one another, as those over the interval of a row. What differs between rows and columns has the number of
    /// the row times that of all columns side by side, plus that of the column.
    pub inside: Vec<For>,
}

/// Iterations, as many at once as the lanes and sides of the loop around them say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Iterations {
    pub first: First,
    pub body: Body,
}

/// Which iterations of a step of the loop around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// One vector, or one iteration, so far behind the first one.
    At(usize),
    /// So many vectors side by side, whose names have the number of their side.
    Sides(usize),
}
