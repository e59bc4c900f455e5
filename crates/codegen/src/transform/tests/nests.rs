//! What the loops around iterations are, as case files, and that they run every iteration as the program says.
//!
//! A case is a file of `tests/nests`: what it shows, the extents of its arrays in several runs, a program with a parallel loop, and
//! its nest for threads with vectors of 32 bytes, or as many as the case says, with how many steps one thread runs in the
//! interior and how many iterations elsewhere. `UPDATE_EXPECT=1` writes these. The nest runs on the reference interpreter with one and with several threads, and must
//! leave what the interpreter of programs leaves.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Facts, Program, Stmt as Source, Store, Type, ValueId, verify};

use super::expected::Expected;
use super::{Loop, cases, compare, memory, read};
use crate::analysis::names::reductions;
use crate::kernel::machine::{Target, Threads};
use crate::kernel::nest::interpret::{Outside, Ran, run};
use crate::kernel::nest::show::show;
use crate::kernel::nest::verify::{Broken, verify as lawful};
use crate::kernel::nest::{Interiors, Kind, Nest, Node, Over, Row};
use crate::transform::forms::Forms;
use crate::transform::loop_nest::ParallelLoop;
use crate::transform::pipeline::C;

/// What the nest of a case is for.
fn target(before: &str) -> Target {
    let bytes = before.lines().find_map(|line| line.strip_prefix("// vector bytes: "));
    Target { vector_bytes: bytes.map_or(32, |bytes| bytes.parse().unwrap()), threads: Threads::Several }
}

/// `19 3; 40 3` as two lists of extents.
pub(super) fn extents(text: &str) -> Vec<Vec<i64>> {
    let numbers = |run: &str| run.split_whitespace().map(|n| n.parse().unwrap()).collect();
    text.split(';').map(numbers).collect()
}

/// A parallel loop and its nest.
struct Nested<'p> {
    l: Loop<'p>,
    sums: Vec<(Combine, &'p Store)>,
    nest: Nest,
}

impl<'p> Nested<'p> {
    fn of(program: &'p Program, facts: &'p Facts, target: Target) -> Nested<'p> {
        let l = Loop::of(program, facts);
        let sums = reductions(facts, l.par);
        let of = ParallelLoop { program, facts, target, par: l.par, reductions: &sums };
        let nest = of.nest(&mut Forms::of(program, facts, C));
        Nested { l, sums, nest }
    }

    /// Runs the nest with so many threads and holds what it leaves against the interpreter of programs; `None` where both meet
    /// the same fault.
    fn run(&self, extents: &[i64], threads: i64, case: &str) -> Option<Ran> {
        let Nested { l, sums, nest } = self;
        let start = memory(l.program, extents);
        let mut found = start.clone();
        let names = l.names_around(&mut found);
        let ranges = nest.ranges.iter().map(|r| (l.number(&names, r.from), l.number(&names, r.to))).collect();
        let early = |v: ValueId| l.lowered(&vec![Source::Let(v)], &BTreeSet::new());
        let ty = |array: ArrayId| l.program.array(array).ty;
        let outside = Outside { threads, names: &names, ranges, early: &early, ty: &ty };
        let ran = match run(nest, &mut found, &outside) {
            Ok(ran) => ran,
            Err(fault) => {
                // What else was computed before a fault depends on threads.
                assert_eq!(l.run(None, &mut start.clone()).1, Err(fault), "{case}");
                return None;
            }
        };
        l.add_totals(&names, sums, &ran.totals, &mut found);
        compare(l.program, l.facts, start, &found, true, &case);
        Some(ran)
    }
}

#[test]
fn nests_run_every_iteration_as_the_program_says() {
    let mut files = Expected::default();
    for (file, text) in cases("nests") {
        let (sizes, program, before) = read(&text, "extents");
        let facts = verify(&program).unwrap();
        let nested = Nested::of(&program, &facts, target(before));
        let (mut inside, mut counts) = (0, String::new());
        for extents in extents(sizes) {
            for threads in [3, 2, 1] {
                let case = format!("{} at {extents:?}, {threads} threads", file.display());
                let Some(ran) = nested.run(&extents, threads, &case) else { continue };
                inside += ran.inside;
                if threads == 1 {
                    let rows = if ran.as_one > 0 { ", rows as one" } else { "" };
                    let together = match ran.together {
                        0 => String::new(),
                        times => format!(", rows together {times} times"),
                    };
                    let Ran { inside, careful, ends, .. } = ran;
                    let ends =
                        if ends > 0 { format!(", {ends} vectors at ends of rows") } else { String::new() };
                    counts += &format!(
                        "at {extents:?}: {inside} in the interior, {careful} others{ends}{rows}{together}\n"
                    );
                }
            }
        }
        let now = format!("{before}=>\n{}{counts}", show(&program, &nested.nest));
        files.hold(&file, &text, &now);
        assert!(inside > 0, "{}: no iteration ran in the interior", file.display());
    }
    files.finish();
}

/// The loop that threads share, the one over rows, and their row.
fn parts(nest: &mut Nest) -> (&mut Kind, &mut Over, &mut Row) {
    let Node::For(shares) = &mut nest.body[0] else { unreachable!("threads share a loop") };
    let Node::For(rows) = &mut shares.body[0] else { unreachable!("a share has rows") };
    let Node::Row(row) = &mut rows.body[0] else { unreachable!("a loop over rows has a row") };
    (&mut shares.kind, &mut rows.over, row)
}

#[test]
fn a_nest_that_breaks_a_rule_is_refused() {
    let named = |name: &str| {
        let (_, text) = cases("nests").into_iter().find(|(file, _)| file.ends_with(name)).unwrap();
        let (_, program, before) = read(&text, "extents");
        let facts = verify(&program).unwrap();
        let nest = Nested::of(&program, &facts, target(before)).nest;
        assert_eq!(lawful(&nest), Ok(()));
        nest
    };
    let nest = named("pointwise.eb");
    let broken = |change: &dyn Fn(&mut Nest)| {
        let mut nest = nest.clone();
        change(&mut nest);
        lawful(&nest).err().map(|Broken(rule)| rule)
    };
    assert_eq!(broken(&|nest| *parts(nest).0 = Kind::Lanes(4)), Some(1));
    assert_eq!(broken(&|nest| *parts(nest).1 = Over::Leaves), Some(2));
    assert_eq!(
        broken(&|nest| parts(nest).2.inside[0].over = Over::Interior { step: 8, unrolled: 1 }),
        Some(3)
    );
    assert_eq!(broken(&|nest| drop(parts(nest).2.inside.remove(0))), Some(3));
    let peeled = parts(&mut named("peeled.eb")).2.inside[0].clone();
    assert!(matches!(peeled.over, Over::Peeled { .. }));
    assert_eq!(broken(&|nest| parts(nest).2.inside.insert(0, peeled.clone())), Some(3));
    assert_eq!(broken(&|nest| nest.reductions.push((Combine::Add, Type::F64))), Some(4));
    let as_one = || Over::Rows(Interiors::AtCornersOrAsOne(BTreeSet::new()));
    assert_eq!(broken(&|nest| *parts(nest).1 = as_one()), Some(5));
    assert_eq!(broken(&|nest| drop(nest.body.pop())), Some(6));
    let together = parts(&mut named("rows_together.eb")).2.together.clone();
    assert!(together.is_some());
    assert_eq!(broken(&|nest| parts(nest).2.together.clone_from(&together)), Some(8));
    let buckets = named("scatter.eb").buckets;
    assert_eq!(broken(&|nest| nest.buckets.clone_from(&buckets)), Some(7));
    let proved = parts(&mut named("ends_of_rows.eb")).2.proved.clone();
    assert!(proved.as_ref().is_some_and(|proved| proved.ends.is_some()));
    assert_eq!(broken(&|nest| parts(nest).2.proved.clone_from(&proved)), Some(9));
}
