//! Loops of a grid for people. Input: a tree; output: a line for each loop, and the bodies of iterations inside.

use std::fmt::Write as _;

use ebbtide_ir::Program;

use super::{Added, Barrier, For, Grid, Iterations, Kind, Node, Often, Over, Runs, Safe, When};
use crate::kernel::show::{block, expr, narrowing, test};

/// The text of a tree.
pub(crate) fn show(program: &Program, grid: &Grid) -> String {
    let mut text = String::new();
    match &grid.safe {
        Safe::Proved(tests) => {
            let tests: Vec<String> = tests.iter().map(|t| test(program, t)).collect();
            let _ = writeln!(text, "proved where {}", tests.join(", "));
        }
        Safe::Interior(interval) => {
            let narrowings: Vec<String> = interval.narrowings.iter().map(|n| narrowing(program, n)).collect();
            let _ = writeln!(text, "interior: all j where {}", narrowings.join(", "));
        }
        Safe::Nowhere => {}
    }
    if !grid.tables.is_empty() {
        let names: Vec<&str> = grid.tables.iter().map(|(a, _)| program.array(*a).name.as_str()).collect();
        let _ = writeln!(text, "tables of terms for {}", names.join(", "));
    }
    Shown { program, out: &mut text }.nodes(&grid.body, 0);
    text
}

struct Shown<'a> {
    program: &'a Program,
    out: &'a mut String,
}

impl Shown<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "  ".repeat(depth));
    }

    /// The depth of recursion is that of the tree.
    fn nodes(&mut self, nodes: &[Node], depth: usize) {
        nodes.iter().for_each(|node| self.node(node, depth));
    }

    fn node(&mut self, node: &Node, depth: usize) {
        match node {
            Node::For(l) => self.for_loop(l, depth),
            Node::If { when, then, otherwise } => {
                self.condition(when, depth);
                self.nodes(then, depth + 1);
                if !otherwise.is_empty() {
                    self.line(depth, "else");
                    self.nodes(otherwise, depth + 1);
                }
            }
            Node::Iterations(Iterations { often, runs, body }) => {
                let seldom = if *often == Often::Seldom { ", seldom" } else { "" };
                let team = if *runs == Runs::Team { " by a team" } else { "" };
                if !(seldom.is_empty() && team.is_empty()) {
                    self.line(depth, &format!("iteration{team}{seldom}"));
                }
                block(self.program, body, depth, self.out);
            }
            Node::Keep(nodes) => {
                self.nodes(nodes, depth);
                self.line(depth, "keep the terms");
            }
            Node::AddTerms(Added::All) => self.line(depth, "add the terms to the sums of their leaves"),
            Node::AddTerms(Added::First) => self.line(depth, "add the terms of the first iteration"),
            Node::EndLeaf => self.line(depth, "end the leaf: add the sums of its lanes"),
            Node::Count(body, exit) => {
                self.line(depth, "each block a part of the batch, count the terms");
                block(self.program, body, depth + 1, self.out);
                self.line(depth + 1, &format!("label exit{exit}"));
            }
            Node::CombineNoted => self.line(depth, "combine the noted terms in order"),
            Node::Label(exit) => self.line(depth, &format!("label exit{exit}")),
            Node::FaultsAside(exit) => {
                self.line(depth, &format!("a fault of the careful iterations, then exit{exit}"));
            }
            Node::Barrier(barrier) => self.line(
                depth,
                match barrier {
                    Barrier::Grid => "barrier",
                    Barrier::GridBetween => "barrier, unless it was the last",
                    Barrier::Block => "barrier of the block",
                    Barrier::BlockUnlessFault => "barrier of the block; after a fault, no more tiles",
                },
            ),
            Node::SkipOne => self.line(depth, "the next batch begins at the next iteration"),
        }
    }

    fn condition(&mut self, when: &When, depth: usize) {
        let text = match when {
            When::Proved => "if proved".to_string(),
            When::Interior => "if in the interior".to_string(),
            When::WarpInterior => "if all of a warp are in the interior".to_string(),
            When::WarpFar { conditions, are } => {
                conditions.iter().for_each(|body| block(self.program, body, depth, self.out));
                let are: Vec<String> = are.iter().map(|(name, holds)| format!("{name} is {holds}")).collect();
                format!("if for all of a warp {}", are.join(", "))
            }
            When::FewIterations => "if there are fewer iterations than threads".to_string(),
            When::ShortRows(columns) => {
                format!("if proved, there are fewer iterations than threads and rows have {columns} columns")
            }
            When::LongChains(ranges) => {
                let ranges: Vec<String> = ranges
                    .iter()
                    .map(|range| range.each_ref().map(|e| expr(self.program, e)).join(".."))
                    .collect();
                format!("if proved, there are few iterations and {} is long", ranges.join(" or "))
            }
            When::NoRoom => "if the first iteration found no room".to_string(),
        };
        self.line(depth, &text);
    }

    fn for_loop(&mut self, l: &For, depth: usize) {
        let kind = match l.kind {
            Kind::Seq => "for",
            Kind::Grid => "grid, each thread some of",
            Kind::Teams => "grid, each team some of",
            Kind::Blocks => "grid, each block some of",
            Kind::OfBlock => "block, each thread some of",
            Kind::OfTeam => "team, each thread a lane of",
            Kind::One => "one thread, all",
        };
        let places = |each: &[usize]| each.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let at_a_time = |n: Option<usize>| n.map_or(String::new(), |n| format!(", {n} at once"));
        let over = match &l.over {
            Over::Bands => "columns and bands of rows".to_string(),
            Over::NarrowBands { .. } => "columns and bands of rows, in narrow arithmetic".to_string(),
            Over::Iterations => "iterations".to_string(),
            Over::IterationsWithChains => "iterations, its threads terms of chains".to_string(),
            Over::ShortRows(columns) => format!("rows, {columns} columns side by side"),
            Over::Leaves | Over::LeavesInTiles(_) => "leaves".to_string(),
            Over::Rows => "rows".to_string(),
            Over::Columns { at_once } => format!("columns{}", at_a_time(*at_once)),
            Over::Tiles(size) => format!("tiles of {size} iterations"),
            Over::OfTile { at_once } => format!("iterations of the tile{}", at_a_time(*at_once)),
            Over::Windows => "windows".to_string(),
            Over::OfWindow => "iterations of the window".to_string(),
            Over::Batches(_) => "batches".to_string(),
            Over::OfBatch(each) => {
                format!("iterations of the batch, with {} places in the tables", places(each))
            }
            Over::CountedBatches => "batches".to_string(),
            Over::OfCountedBatch => {
                "iterations of the batch that found room, with places as counted".to_string()
            }
            Over::FirstOfBatch { .. } => "of the first iteration of the batch".to_string(),
        };
        self.line(depth, &format!("{kind} {over}"));
        if let Over::NarrowBands { together: Some((rows, nodes)), .. } = &l.over {
            self.line(depth + 1, &format!("{rows} rows at a time"));
            self.nodes(nodes, depth + 2);
            self.line(depth + 1, "the rows that are left");
            return self.nodes(&l.body, depth + 2);
        }
        self.nodes(&l.body, depth + 1);
    }
}
