//! What loops are that run inside their parallel loops, as case files, and that they compute what the program says.
//!
//! A case is a file of `tests/interchanges`: what it shows, the extents of its arrays in several runs, a program whose sequential loops
//! run inside their parallel loops, their trees, and in which runs the guards held. `UPDATE_EXPECT=1` writes these. The trees run on
//! the reference interpreter, iterations of the domain first to last and last to first, and must leave what the interpreter of programs
//! leaves.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::evaluate::Bits;
use ebbtide_ir::{ArrayId, Facts, LoopKind, ParFacts, Program, Stmt as Source, ValueId, verify};

use super::expected::Expected;
use super::nests::extents;
use super::{PLACES, cases, compare, memory, read, reference};
use crate::analysis::interchange::interchange;
use crate::kernel::interchange::interpret::{Outside, Tapes, run};
use crate::kernel::interchange::show::show;
use crate::kernel::interchange::verify::{Broken, verify as lawful};
use crate::kernel::interchange::{Guard, Interchanged};
use crate::kernel::interpret::{Ended, Iteration, Memory};
use crate::kernel::name::{Fresh, Name, Variable};
use crate::kernel::stmt::{Body, Stmt};
use crate::transform::forms::Forms;
use crate::transform::interchange::TimeLoop;
use crate::transform::lower::{Lowering, Shared, Team};
use crate::transform::pipeline::CUDA;

fn lowered(program: &Program, stmt: &Source) -> Body {
    let lowering = Lowering {
        program,
        exact: &BTreeSet::new(),
        sharing: &ParFacts::default(),
        shared: &Shared::default(),
        team: Team::Alone,
        assertions: &BTreeMap::new(),
    };
    lowering.body(&vec![stmt.clone()], &mut Fresh::default())
}

/// The trees of a program's loops, in order.
fn trees<'p>(program: &'p Program, facts: &'p Facts) -> Vec<Interchanged<'p>> {
    let mut forms = Forms::of(program, facts, CUDA);
    let loops =
        program.body.iter().filter_map(|stmt| if let Source::Loop(l) = stmt { Some(l) } else { None });
    let mut tree = |source| {
        let plan = interchange(program, facts, source).unwrap_or_else(|why| panic!("{why}"));
        TimeLoop { program, facts, source, plan }.tree(&mut forms).unwrap()
    };
    loops.map(&mut tree).collect()
}

/// Runs the program with these trees as its loops: says whether the guards of all of them held.
fn run_all(
    program: &Program,
    trees: &[Interchanged],
    memory: &mut Memory,
    last_first: bool,
) -> Result<bool, Ended> {
    let (mut trees, mut names) = (trees.iter(), BTreeMap::<Name, Vec<Bits>>::new());
    let mut tapes = Tapes { capacity: PLACES, ..Tapes::default() };
    for stmt in &program.body {
        let mut compute = |names: &mut BTreeMap<Name, Vec<Bits>>, stmt: &Source| {
            let none = |_: ValueId| -> i64 { unreachable!("nothing wraps at program level") };
            let mut one = Iteration::new(memory, &none, []);
            one.names = std::mem::take(names);
            one.run(&lowered(program, stmt)).unwrap();
            *names = one.names;
        };
        if !matches!(stmt, Source::Loop(_)) {
            compute(&mut names, stmt);
            continue;
        }
        let tree = trees.next().unwrap();
        let mut known = names.clone();
        tree.early.iter().for_each(|v| compute(&mut known, &Source::Let(*v)));
        let value = |v: ValueId| match program.literal(v) {
            Some(literal) => literal.to_i64().unwrap(),
            None => known[&Name::value(v)][0] as i64,
        };
        if !run(tree, memory, &mut tapes, &Outside { names: &known, value: &value, last_first })? {
            return Ok(false);
        }
    }
    assert!(tapes.places.values().all(Vec::is_empty), "what is pushed is popped");
    Ok(true)
}

#[test]
fn loops_inside_their_parallel_loops_compute_what_the_program_says() {
    let mut files = Expected::default();
    for (file, text) in cases("interchanges") {
        let (sizes, program, before) = read(&text, "extents");
        let facts = verify(&program).unwrap();
        let trees = trees(&program, &facts);
        let mut now = format!("{before}=>\n");
        trees.iter().for_each(|tree| now += &show(&program, tree));
        for extents in extents(sizes) {
            let case = format!("{} at {extents:?}", file.display());
            let start = memory(&program, &extents);
            let ends = [false, true].map(|last_first| {
                let mut found = start.clone();
                let ran = run_all(&program, &trees, &mut found, last_first);
                match ran {
                    Ok(true) => compare(&program, &facts, start.clone(), &found, true, &case),
                    Ok(false) => {}
                    // What else was computed before a fault depends on the order.
                    Err(_) => assert!(!reference(&program, &facts, &start).1, "{case}"),
                }
                ran.map_or_else(|_| "a fault", |inside| if inside { "inside" } else { "outside" })
            });
            assert_eq!(ends[0], ends[1], "{case}");
            now += &format!("at {extents:?}: {}\n", ends[0]);
        }
        files.hold(&file, &text, &now);
    }
    files.finish();
}

/// The rule that the first tree of a case breaks when it is changed.
fn broken(name: &str, change: &dyn Fn(&mut Interchanged)) -> Option<usize> {
    let (_, text) = cases("interchanges").into_iter().find(|(file, _)| file.ends_with(name)).unwrap();
    let (_, program, _) = read(&text, "extents");
    let facts = verify(&program).unwrap();
    let mut tree = trees(&program, &facts).swap_remove(0);
    assert_eq!(lawful(&program, &tree), Ok(()));
    change(&mut tree);
    lawful(&program, &tree).err().map(|Broken(rule)| rule)
}

#[test]
fn a_tree_that_breaks_a_rule_is_refused() {
    let array = ArrayId::from_index(0);
    let is_push = |stmt: &Stmt| matches!(stmt, Stmt::Push { .. });
    assert_eq!(broken("two_places.eb", &|_| {}), None);
    assert_eq!(broken("pointwise.eb", &|tree| tree.body.insert(0, tree.body[0].clone())), Some(1));
    assert_eq!(
        broken("rows_told_apart.eb", &|tree| {
            let held = tree.held[&ArrayId::from_index(1)];
            tree.held.insert(array, held);
        }),
        Some(2)
    );
    assert_eq!(broken("two_places.eb", &|tree| tree.body.retain(|stmt| !is_push(stmt))), Some(3));
    assert_eq!(
        broken("two_places.eb", &|tree| tree.body.reverse()).map(|rule| rule == 1 || rule == 3),
        Some(true)
    );
    assert_eq!(
        broken("both_halves.eb", &|tree| {
            let at = tree.body.iter().position(is_push).unwrap();
            let push = tree.body.remove(at);
            let condition = crate::kernel::expr::Expr::truth(true);
            tree.body.push(Stmt::If { condition, then: vec![push], otherwise: Vec::new() });
        }),
        Some(3)
    );
    assert_eq!(
        broken("take_turns.eb", &|tree| tree.guards.retain(|guard| !matches!(guard, Guard::Whole(..)))),
        Some(4)
    );
    assert_eq!(
        broken("both_halves.eb", &|tree| tree.guards.retain(|guard| !matches!(guard, Guard::Places(..)))),
        Some(4)
    );
}

#[test]
fn a_case_has_every_kind_of_statement() {
    let (mut all, mut loops) = (BTreeSet::new(), 0);
    for (_, text) in cases("interchanges") {
        let (_, program, _) = read(&text, "extents");
        let facts = verify(&program).unwrap();
        for tree in trees(&program, &facts) {
            loops += usize::from(matches!(tree.source.kind, LoopKind::For { .. }));
            for stmt in &tree.body {
                let held = |name: &Name| matches!(name.variable, Variable::Held(_));
                all.insert(match stmt {
                    Stmt::Push { .. } => "push",
                    Stmt::Pop { .. } => "pop",
                    Stmt::Assign { name, .. } if held(name) => "an element that is held",
                    Stmt::Store { .. } => "an element in memory",
                    Stmt::If { .. } => "a branch",
                    _ => continue,
                });
            }
        }
    }
    assert!(loops > 8 && all.len() == 5, "{all:?}");
}
