//! What is lawful for a grid. Input: the tree of a parallel loop; output: the first rule that it breaks.
//!
//! 1. Who runs a loop fits what it goes through, and the loop stands where there is such a thing.
//! 2. Threads that meet all come: barriers of the grid stand where all threads are alike, those of a block inside its leaves.
//! 3. Terms that threads keep are added behind a barrier, and memory of terms is used again behind another one.
//! 4. Sums are combined in leaves: there are leaves or kept terms where there are sums, and nowhere else.
//! 5. Ways without checks are chosen by what is known: a proof, or an interior.
//! 6. The label for faults stands once.
//! 7. Terms are noted in batches, and combined behind a barrier; there are tables where there are batches, and nowhere else.

use std::fmt;

use super::{Barrier, Cut, For, Grid, Kind, Node, Over, Safe, When, visit};

/// Why a tree is not lawful: the number of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub usize);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of grids", self.0)
    }
}

/// Is the tree lawful?
pub(crate) fn verify(grid: &Grid) -> Result<(), Broken> {
    let (mut labels, mut noted, mut summed) = (0, false, false);
    visit(&grid.body, &mut |node| match node {
        Node::Label(_) => labels += 1,
        Node::CombineNoted => noted = true,
        Node::EndLeaf | Node::AddTerms(_) => summed = true,
        _ => {}
    });
    holds(labels == 1, 6)?;
    holds(summed != grid.reductions.is_empty(), 4)?;
    holds(noted != grid.tables.is_empty(), 7)?;
    Place { grid, around: None }.nodes(&grid.body).map(drop)
}

fn holds(condition: bool, rule: usize) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken(rule)) }
}

/// Where nodes stand: in which loop.
#[derive(Clone, Copy)]
struct Place<'a> {
    grid: &'a Grid,
    around: Option<&'a For>,
}

impl<'a> Place<'a> {
    /// Nodes of one list: are there terms behind them that threads left and have not met for? The depth of recursion is that of
    /// the tree.
    fn nodes(self, nodes: &'a [Node]) -> Result<bool, Broken> {
        // Have threads read terms, where others may write the next ones?
        let (mut left, mut read) = (false, false);
        for node in nodes {
            match node {
                Node::Barrier(barrier) => {
                    self.barrier(*barrier)?;
                    (left, read) = (false, false);
                }
                Node::AddTerms(_) | Node::CombineNoted => {
                    holds(!left, if *node == Node::CombineNoted { 7 } else { 3 })?;
                    read = true;
                }
                // The next batch begins with a count and a barrier.
                Node::SkipOne => {
                    holds(!left && self.is_over(&Over::CountedBatches), 7)?;
                    (left, read) = (false, false);
                }
                _ => left |= self.node(node)?,
            }
        }
        // The next window or batch begins where this one ends; a tile begins with a barrier.
        let reuses = matches!(
            self.around.map(|l| &l.over),
            Some(Over::Windows | Over::Batches(_) | Over::CountedBatches)
        );
        holds(!reuses || !read, 3)?;
        Ok(left)
    }

    fn node(self, node: &'a Node) -> Result<bool, Broken> {
        match node {
            Node::For(l) => {
                holds(self.admits(l), 1)?;
                let inside = Place { around: Some(l), ..self };
                let notes =
                    matches!(l.over, Over::OfBatch(_) | Over::OfCountedBatch | Over::FirstOfBatch { .. });
                if let Over::NarrowBands { together: Some((_, nodes)), .. } = &l.over {
                    inside.nodes(nodes)?;
                }
                Ok(inside.nodes(&l.body)? || notes)
            }
            Node::If { when, then, otherwise } => {
                let known = match when {
                    When::Proved | When::WarpFar { .. } => matches!(self.grid.safe, Safe::Proved(_)),
                    When::Interior | When::WarpInterior => matches!(self.grid.safe, Safe::Interior(_)),
                    When::FewIterations => self.around.is_none(),
                    When::LongChains(_) | When::ShortRows(_) => {
                        self.around.is_none() && matches!(self.grid.safe, Safe::Proved(_))
                    }
                    When::NoRoom => self.is_over(&Over::CountedBatches),
                };
                holds(known, 5)?;
                let (then, otherwise) = (self.nodes(then)?, self.nodes(otherwise)?);
                Ok(then || otherwise)
            }
            Node::Keep(nodes) => self.nodes(nodes).map(|_| true),
            Node::Iterations(_) => {
                holds(self.around.is_some_and(|l| is_innermost(&l.over)), 1)?;
                Ok(false)
            }
            Node::EndLeaf => {
                holds(self.around.is_some_and(|l| is_leaves(&l.over)), 4)?;
                Ok(false)
            }
            Node::Count(..) => {
                holds(self.is_over(&Over::CountedBatches), 7)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn is_over(self, over: &Over) -> bool {
        self.around.is_some_and(|l| l.over == *over)
    }

    fn barrier(self, barrier: Barrier) -> Result<(), Broken> {
        let around = self.around.map(|l| &l.over);
        let alike = match (barrier, around) {
            (Barrier::Grid, None) => true,
            (Barrier::Grid | Barrier::GridBetween, Some(over)) => {
                matches!(over, Over::Windows | Over::Batches(_) | Over::CountedBatches)
            }
            (Barrier::Block, Some(Over::Tiles(_) | Over::LeavesInTiles(_))) => true,
            (Barrier::BlockUnlessFault, Some(Over::Tiles(_))) => true,
            _ => false,
        };
        holds(alike, 2)
    }

    /// May this loop stand here?
    fn admits(self, l: &For) -> bool {
        let around = self.around.map(|l| (l.kind, &l.over));
        match (&l.over, l.kind) {
            (Over::Bands | Over::NarrowBands { .. }, Kind::Grid)
            | (Over::IterationsWithChains, Kind::Teams) => around.is_none() && self.grid.cut == Cut::Bands,
            (Over::Iterations, Kind::Grid | Kind::Teams)
            | (Over::ShortRows(_), Kind::Teams)
            | (Over::Windows | Over::Batches(_) | Over::CountedBatches, Kind::Seq) => {
                around.is_none() && self.grid.cut == Cut::Iterations
            }
            (Over::Leaves, Kind::Teams | Kind::One) | (Over::LeavesInTiles(_), Kind::Blocks) => {
                around.is_none() && self.grid.cut == Cut::Leaves
            }
            (Over::Rows, Kind::Seq) => matches!(around, Some((_, Over::Leaves))),
            (Over::Columns { .. }, Kind::OfTeam | Kind::Seq) => matches!(around, Some((_, Over::Rows))),
            (Over::Tiles(size), Kind::Seq) => {
                matches!(around, Some((_, Over::LeavesInTiles(of))) if of == size)
            }
            (Over::OfTile { .. }, Kind::OfBlock) => matches!(around, Some((_, Over::Tiles(_)))),
            (Over::OfWindow, Kind::Grid) => matches!(around, Some((_, Over::Windows))),
            (Over::OfBatch(each), Kind::Grid) => matches!(around, Some((_, Over::Batches(of))) if of == each),
            (Over::OfCountedBatch, Kind::Blocks) | (Over::FirstOfBatch { .. }, Kind::One) => {
                matches!(around, Some((_, Over::CountedBatches)))
            }
            _ => false,
        }
    }
}

/// Does a loop give an iteration its index?
fn is_innermost(over: &Over) -> bool {
    !matches!(
        over,
        Over::Leaves
            | Over::LeavesInTiles(_)
            | Over::Rows
            | Over::Tiles(_)
            | Over::Windows
            | Over::Batches(_)
            | Over::CountedBatches
    )
}

fn is_leaves(over: &Over) -> bool {
    matches!(over, Over::Leaves | Over::LeavesInTiles(_))
}
