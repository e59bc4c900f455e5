//! What the loops around iterations are on a grid, as case files, and that they run every iteration as the program says.
//!
//! A case is a file of `tests/grids`: what it shows, the extents of its arrays in several runs, a program with a parallel loop, and
//! its tree, with how many iterations of each run needed no checks and how many were careful. `UPDATE_EXPECT=1` writes these. The
//! tree runs on the reference interpreter with several grids, whose threads come first to last and last to first, and must leave
//! what the interpreter of programs leaves.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Facts, Program, Stmt as Source, Store, ValueId, verify};

use super::expected::Expected;
use super::nests::extents;
use super::{Loop, cases, compare, memory, read};
use crate::analysis::grid_form::{grid_form, grid_manner};
use crate::analysis::names::reductions;
use crate::kernel::grid::interpret::{Ran, Threads, run};
use crate::kernel::grid::show::show;
use crate::kernel::grid::verify::{Broken, verify as lawful};
use crate::kernel::grid::{Barrier, Cut, For, Grid, Kind, Node, Over, Safe};
use crate::kernel::interpret::Memory;
use crate::kernel::nest::interpret::Outside;
use crate::transform::forms::Forms;
use crate::transform::grid_nest::GridLoop;
use crate::transform::pipeline::CUDA;

const GRIDS: [Threads; 4] = [
    Threads { blocks: 1, of_block: 16, last_first: false },
    Threads { blocks: 3, of_block: 32, last_first: false },
    Threads { blocks: 2, of_block: 16, last_first: true },
    Threads { blocks: 2, of_block: 48, last_first: true },
];

/// A parallel loop and its tree.
struct Dealt<'p> {
    l: Loop<'p>,
    sums: Vec<(Combine, &'p Store)>,
    grid: Grid,
}

impl<'p> Dealt<'p> {
    fn of(program: &'p Program, facts: &'p Facts) -> Dealt<'p> {
        let l = Loop::of(program, facts);
        let mut forms = Forms::of(program, facts, CUDA);
        let manner = grid_manner(program, facts, l.par);
        let form = &grid_form((program, facts), l.par, manner, forms.terms());
        let grid = GridLoop { program, facts, par: l.par, form }.nest(&mut forms);
        Dealt { sums: reductions(facts, l.par), l, grid }
    }

    /// Runs the tree: what it leaves, and what happened; `None` where it meets the fault that the program meets.
    fn run(&self, start: &Memory, threads: Threads, case: &str) -> Option<(Memory, Ran)> {
        let Dealt { l, sums, grid } = self;
        let mut found = start.clone();
        let names = l.names_around(&mut found);
        let ranges = grid.ranges.iter().map(|r| (l.number(&names, r.from), l.number(&names, r.to))).collect();
        let early = |v: ValueId| l.lowered(&vec![Source::Let(v)], &BTreeSet::new());
        let ty = |array: ArrayId| l.program.array(array).ty;
        let outside = Outside { threads: 1, names: &names, ranges, early: &early, ty: &ty };
        let ran = match run(grid, &mut found, &outside, threads) {
            Ok(ran) => ran,
            Err(fault) => {
                // What else was computed before a fault depends on threads.
                assert_eq!(l.run(None, &mut start.clone()).1, Err(fault), "{case}");
                return None;
            }
        };
        l.add_totals(&names, sums, &ran.totals, &mut found);
        Some((found, ran))
    }
}

#[test]
fn grids_run_every_iteration_as_the_program_says() {
    let mut files = Expected::default();
    for (file, text) in cases("grids") {
        let (sizes, program, before) = read(&text, "extents");
        let facts = verify(&program).unwrap();
        let dealt = Dealt::of(&program, &facts);
        let mut counts = String::new();
        for extents in extents(sizes) {
            for threads in GRIDS {
                let case = format!("{} at {extents:?}, {threads:?}", file.display());
                let start = memory(&program, &extents);
                let Some((found, ran)) = dealt.run(&start, threads, &case) else { continue };
                compare(&program, &facts, start, &found, true, &case);
                if threads.blocks == 1 {
                    let Ran { unchecked, careful, .. } = ran;
                    counts += &format!("at {extents:?}: {unchecked} without checks, {careful} others\n");
                }
            }
        }
        let now = format!("{before}=>\n{}{counts}", show(&program, &dealt.grid));
        files.hold(&file, &text, &now);
    }
    files.finish();
}

/// Gives the tree of a case to a function.
fn with<R>(name: &str, f: impl FnOnce(&Dealt) -> R) -> R {
    let (_, text) = cases("grids").into_iter().find(|(file, _)| file.ends_with(name)).unwrap();
    let (_, program, _) = read(&text, "extents");
    let facts = verify(&program).unwrap();
    let dealt = Dealt::of(&program, &facts);
    assert_eq!(lawful(&dealt.grid), Ok(()));
    f(&dealt)
}

/// The nodes of the outermost loop.
fn nodes(grid: &mut Grid) -> &mut Vec<Node> {
    let Some(Node::For(l)) = grid.body.first_mut() else { unreachable!("the tree begins with a loop") };
    &mut l.body
}

fn broken(name: &str, change: &dyn Fn(&mut Grid)) -> Option<usize> {
    with(name, |dealt| {
        let mut grid = dealt.grid.clone();
        change(&mut grid);
        lawful(&grid).err().map(|Broken(rule)| rule)
    })
}

#[test]
fn a_tree_that_breaks_a_rule_is_refused() {
    let barrier = |node: &Node| *node == Node::Barrier(Barrier::Grid);
    assert_eq!(broken("bands_with_an_interior.eb", &|grid| grid.cut = Cut::Leaves), Some(1));
    assert_eq!(
        broken("terms_first.eb", &|grid| {
            grid.body.push(Node::For(For { kind: Kind::Seq, over: Over::Rows, body: Vec::new() }));
        }),
        Some(1)
    );
    assert_eq!(
        broken("leaves_of_blocks.eb", &|grid| nodes(grid).push(Node::Barrier(Barrier::Grid))),
        Some(2)
    );
    assert_eq!(broken("terms_first.eb", &|grid| nodes(grid).retain(|node| !barrier(node))), Some(3));
    assert_eq!(broken("terms_first.eb", &|grid| drop(nodes(grid).pop())), Some(3));
    assert_eq!(broken("leaves_of_teams.eb", &|grid| drop(nodes(grid).pop())), Some(4));
    assert_eq!(broken("bands_with_an_interior.eb", &|grid| grid.safe = Safe::Nowhere), Some(5));
    assert_eq!(broken("bands_with_an_interior.eb", &|grid| drop(grid.body.pop())), Some(6));
    assert_eq!(broken("noted_alone.eb", &|grid| nodes(grid).retain(|node| !barrier(node))), Some(7));
    assert_eq!(broken("noted.eb", &|grid| grid.tables.clear()), Some(7));
}

/// Takes all barriers out of a list, and out of the loops in it.
fn without_barriers(nodes: &mut Vec<Node>) {
    nodes.retain(|node| !matches!(node, Node::Barrier(_)));
    for node in nodes {
        if let Node::For(l) = node {
            without_barriers(&mut l.body);
        }
    }
}

#[test]
fn barriers_that_are_missing_show() {
    for name in ["terms_first.eb", "leaves_of_blocks.eb"] {
        with(name, |dealt| {
            let (l, sums) = (Loop::of(dealt.l.program, dealt.l.facts), dealt.sums.clone());
            let mut other = Dealt { l, sums, grid: dealt.grid.clone() };
            without_barriers(&mut other.grid.body);
            let start = memory(dealt.l.program, &[200]);
            let differs = |threads: &Threads| {
                let [with, without] =
                    [dealt, &other].map(|dealt| dealt.run(&start, *threads, name).map(|ran| ran.0));
                with != without
            };
            assert!(GRIDS.iter().any(differs), "{name}");
        });
    }
}
