//! The loops around the iterations of a parallel loop, for a grid of threads, as a tree.
//!
//! All threads of the grid run it. A loop says who takes which of its iterations; what stands beside loops, all threads do, or each
//! its part of it. A domain is cut into *bands* (a column and some rows for each thread), into *iterations* in their order, or into
//! *leaves* of sums (law 8). Sums of iterations whose terms are *kept* are added later, behind a barrier; so are terms that
//! iterations *note* for elements that they share, in *batches*.
//!
//! [`verify`] says what is right, [`show`] prints it for people, and `interpret` is what it means, for tests.

#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod show;
pub(crate) mod verify;

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Range, Type, ValueId};

use super::bounds_test::Test;
use super::expr::Expr;
use super::interval::Interval;
use super::name::Name;
use super::stmt::Body;

/// A parallel loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    /// Its ranges, outermost first. The innermost one runs along a row.
    pub ranges: Vec<Range>,
    /// The sums, minima and maxima over its iterations, by number: how terms are combined, and their type.
    pub reductions: Vec<(Combine, Type)>,
    /// Where terms are noted, by number: the array, and how they are combined with its elements.
    pub tables: Vec<(ArrayId, Combine)>,
    pub safe: Safe,
    pub cut: Cut,
    pub body: Vec<Node>,
}

/// Which iterations need no checks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Safe {
    /// All, where these tests hold, which are asked before the loop.
    Proved(BTreeSet<Test>),
    /// Those in the interval of their row.
    Interior(Interval),
    /// None.
    Nowhere,
}

/// How the domain is dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Bands,
    Iterations,
    Leaves,
}

/// A piece of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    For(For),
    If {
        when: When,
        then: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Iterations(Iterations),
    /// An iteration whose terms of sums are kept, in the place that it has in its tile, window or batch.
    Keep(Vec<Node>),
    /// Adds the terms that iterations of a tile, window or batch kept to the sums of leaves.
    AddTerms(Added),
    /// The sums of a leaf, from those of its lanes.
    EndLeaf,
    /// The terms that an iteration of a counted batch will note, by table. An iteration that meets a fault continues at the label.
    Count(Body, usize),
    /// Combines all noted terms of a batch with the elements of their arrays, in the order of iterations.
    CombineNoted,
    /// Where an iteration that meets a fault continues.
    Label(usize),
    /// Reports the fault that an iteration of a loop without proof met, and then continues at the label.
    FaultsAside(usize),
    Barrier(Barrier),
    /// The batch is at its end: the next one begins one iteration later.
    SkipOne,
}

/// Who meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// All threads.
    Grid,
    /// All threads, where another window or batch follows: it uses the same memory.
    GridBetween,
    /// The threads of a block.
    Block,
    /// The threads of a block, in a loop over tiles: where one of them met a fault, the tile is the last one of its leaf.
    BlockUnlessFault,
}

/// Whose terms are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Of all iterations of the tile, window or batch.
    All,
    /// Of the first one of a batch.
    First,
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct For {
    pub kind: Kind,
    pub over: Over,
    pub body: Vec<Node>,
}

/// Who runs the iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those who run what is around it, one after the other.
    Seq,
    /// Each thread of the grid takes some.
    Grid,
    /// Each team of threads takes some.
    Teams,
    /// Each block takes some.
    Blocks,
    /// Each thread of a block takes some.
    OfBlock,
    /// Each thread of a team takes those of its lane.
    OfTeam,
    /// One thread takes all.
    One,
}

/// What a loop goes through.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Over {
    /// The columns and rows of a band.
    Bands,
    /// The same, in narrow index arithmetic. Values of the loop are compared with these. So many rows are taken at a time, as these
    /// nodes, as long as there are so many.
    NarrowBands {
        bounds: BTreeSet<ValueId>,
        together: Option<(usize, Vec<Node>)>,
    },
    /// All iterations.
    Iterations,
    /// The same, for teams that compute the terms of chains side by side.
    IterationsWithChains,
    /// Rows of so many columns, whose iterations stand side by side.
    ShortRows(usize),
    Leaves,
    /// Leaves, of which so many iterations at a time keep their terms in memory that the threads of a block share.
    LeavesInTiles(usize),
    /// The rows of a leaf.
    Rows,
    /// The iterations of a row of a leaf: where they are proved, it pays to have so many of them on their way at once.
    Columns {
        at_once: Option<usize>,
    },
    /// Pieces of a leaf, of so many iterations.
    Tiles(usize),
    /// The iterations of a tile, in the same way.
    OfTile {
        at_once: Option<usize>,
    },
    /// All iterations, as many at a time as there is room for the terms that they keep.
    Windows,
    OfWindow,
    /// All iterations, as many at a time as there is room for the terms that they note: so many each, by table.
    Batches(Vec<usize>),
    /// The iterations of a batch, each with so many places in each table.
    OfBatch(Vec<usize>),
    /// All iterations, as many at a time as there is room for the terms that they note, which are counted before.
    CountedBatches,
    /// The iterations of a batch that found room, each with as many places in each table as it was counted to have terms.
    OfCountedBatch,
    /// The first iteration of a batch; it continues at this label where it meets a fault.
    FirstOfBatch {
        exit: usize,
    },
}

/// What decides between two ways.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum When {
    /// The tests before the loop hold.
    Proved,
    /// The iteration is in the interior.
    Interior,
    /// All iterations of a warp are in the interior: a warp that needs the other way somewhere takes one way, not two.
    WarpInterior,
    /// In all iterations of a warp, the conditions that these statements compute, for each of the iterations side by side, have
    /// these values.
    WarpFar { conditions: Vec<Body>, are: Vec<(Name, bool)> },
    /// There are fewer iterations than threads.
    FewIterations,
    /// The tests before the loop hold, there are fewer iterations than threads, and rows have so many columns.
    ShortRows(usize),
    /// The tests before the loop hold, there are fewer iterations than a quarter of the threads, and one of these ranges is long.
    LongChains(Vec<[Expr; 2]>),
    /// The first iteration of the batch found no room for its terms.
    NoRoom,
}

/// One iteration, or several in neighbouring rows or in a short row, without anything around it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Iterations {
    pub often: Often,
    pub runs: Runs,
    pub body: Body,
}

/// How often they run, next to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Often {
    Often,
    Seldom,
}

/// Who runs an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// One thread.
    Alone,
    /// The threads of a team, alike but for sums, of which each takes a lane.
    Team,
}

/// Calls a function with each node, outer before inner. The depth of recursion is that of the tree.
pub(crate) fn visit<'a>(nodes: &'a [Node], each: &mut dyn FnMut(&'a Node)) {
    for node in nodes {
        each(node);
        match node {
            Node::For(l) => {
                visit(&l.body, each);
                if let Over::NarrowBands { together: Some((_, nodes)), .. } = &l.over {
                    visit(nodes, each);
                }
            }
            Node::If { then, otherwise, .. } => {
                visit(then, each);
                visit(otherwise, each);
            }
            Node::Keep(nodes) => visit(nodes, each),
            _ => {}
        }
    }
}
