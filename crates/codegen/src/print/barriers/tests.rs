//! Where threads meet in small segments, as case files, and that they meet wherever they must.
//!
//! A case is a file of `tests/segments`: what it shows, the extents of its arrays, a program, and its steps for the threads of a CPU
//! and for a grid. `UPDATE_EXPECT=1` writes these. The steps run on the reference interpreter with three threads, which come in
//! several orders between barriers, and must leave what the interpreter of programs leaves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Facts, Par, ParId, Program, Stmt, ValueId, verify, walk};
use expect_test::expect;

use crate::analysis::names::{Names, reductions, sharing};
use crate::analysis::packed_tapes::PackedTapes;
use crate::analysis::thread_ownership::OnEntry;
use crate::kernel::interpret::Memory;
use crate::kernel::machine::{Family, Target, Threads};
use crate::kernel::name::Fresh;
use crate::kernel::segment::interpret::{Dealt, Segment};
use crate::kernel::segment::show::show;
use crate::kernel::segment::verify::{Broken, verify as lawful};
use crate::kernel::segment::{Barrier, MappingId, Step, Steps, TimeLoop};
use crate::kernel::stmt::Body;
use crate::print::emitter::Emitter;
use crate::transform::lower::{Lowering, Shared, Team};
use crate::transform::tests::expected::Expected;
use crate::transform::tests::{cases, compare, memory, read};

const ORDERS: [[usize; 3]; 4] = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]];

/// A program as one segment, and the ways in which its loops are dealt out.
struct Whole<'p> {
    program: &'p Program,
    facts: &'p Facts,
    steps: Steps<'p>,
    domains: BTreeMap<MappingId, (ValueId, ValueId)>,
    /// The loops, and the mappings, whose domain sums of a time loop have too.
    beside_sums: (BTreeSet<ParId>, BTreeSet<MappingId>),
}

impl<'p> Whole<'p> {
    fn of(program: &'p Program, facts: &'p Facts, family: Family) -> Whole<'p> {
        let mut text =
            Emitter::of(program, facts, family, Target { vector_bytes: 32, threads: Threads::Several });
        let names = Names::of(program, &program.body);
        text.known_on_entry = OnEntry { given: names.used.clone(), named: names.arrays.clone() };
        text.find_mappings(&program.body);
        let (mut domains, mut beside_sums) = (BTreeMap::new(), (BTreeSet::new(), BTreeSet::new()));
        walk(&program.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && let Some(mapping) = text.mapping(par)
            {
                domains.insert(mapping, (par.ranges[0].from, par.ranges[0].to));
                if text.beside_sums(mapping).is_some() {
                    beside_sums.0.insert(par.id);
                    beside_sums.1.insert(mapping);
                }
            }
        });
        Whole { program, facts, steps: text.steps_of(&program.body), domains, beside_sums }
    }

    /// What is left in memory after threads have run these steps in this order, by leaves where they can.
    fn run(&self, steps: &Steps, start: &Memory, order: &[usize], by_leaves: bool) -> Memory {
        let lowered = |block: &Block, par: Option<&Par>| -> Body {
            let sharing = par.map(|par| sharing(self.facts, par)).unwrap_or_default();
            let lowering = Lowering {
                program: self.program,
                exact: &BTreeSet::new(),
                sharing: &sharing,
                shared: &Shared::default(),
                team: Team::Alone,
                assertions: &BTreeMap::new(),
            };
            lowering.body(block, &mut Fresh::default())
        };
        let mut bodies: BTreeMap<ParId, Body> = BTreeMap::new();
        walk(&self.program.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                bodies.insert(par.id, lowered(&par.body, Some(par)));
            }
        });
        let segment = Segment {
            program: self.program,
            steps,
            value: &|v| lowered(&vec![Stmt::Let(v)], None),
            iteration: &|par| bodies[&par.id].clone(),
            reductions: &|par| reductions(self.facts, par).iter().map(|(how, s)| (*how, s.array)).collect(),
            domain: &|mapping| self.domains[&mapping],
            is_beside_sums: &|dealt| match dealt {
                Dealt::Loop(par) => self.beside_sums.0.contains(&par.id),
                Dealt::Elements(mapping) => self.beside_sums.1.contains(&mapping),
            },
            by_leaves,
        };
        segment.run(start.clone(), order)
    }

    /// Do threads leave something else in some order?
    fn differs(&self, steps: &Steps, start: &Memory, expected: &Memory) -> bool {
        let ways = ORDERS.iter().flat_map(|order| [false, true].map(|by_leaves| (order, by_leaves)));
        ways.into_iter().any(|(order, by_leaves)| self.run(steps, start, order, by_leaves) != *expected)
    }
}

/// The steps without one of their barriers that always stand, by number; `None` where there are not so many.
fn without_barrier<'p>(steps: &Steps<'p>, number: usize) -> Option<Steps<'p>> {
    let (mut steps, mut left) = (steps.clone(), number as i64);
    remove(&mut steps, &mut left);
    (left < 0).then_some(steps)
}

fn remove(steps: &mut Steps, left: &mut i64) {
    let mut at = 0;
    while at < steps.len() {
        if let Step::Barrier(Barrier::Always | Barrier::UnlessByLeaves(_)) = steps[at] {
            *left -= 1;
            if *left == -1 {
                drop(steps.remove(at));
                continue;
            }
        }
        match &mut steps[at] {
            Step::If { then, otherwise, .. } => {
                remove(then, left);
                remove(otherwise, left);
            }
            Step::Loop(TimeLoop { head, body, .. }) => {
                remove(head, left);
                remove(body, left);
            }
            Step::Interchanged(_, steps) | Step::Par(_, steps) | Step::Library(_, steps) => {
                remove(steps, left)
            }
            _ => {}
        }
        at += 1;
    }
}

#[test]
fn threads_meet_where_they_must_whichever_comes_first() {
    let (mut files, mut barriers, mut needed) = (Expected::default(), 0, 0);
    for (file, text) in cases("segments") {
        let (sizes, program, before) = read(&text, "extents");
        let extents: Vec<i64> = sizes.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let facts = verify(&program).unwrap();
        let mut now = format!("{before}=>\n");
        for (name, family) in [("threads", Family::C), ("grid", Family::Cuda)] {
            let whole = Whole::of(&program, &facts, family);
            assert_eq!(lawful(&whole.steps), Ok(()));
            now += &format!("{name}\n{}", show(&program, &whole.steps));
            let start = memory(&program, &extents);
            let found = whole.run(&whole.steps, &start, &ORDERS[0], false);
            compare(&program, &facts, start.clone(), &found, true, &file.display());
            assert!(!whole.differs(&whole.steps, &start, &found), "{}: {name}", file.display());
            let mut number = 0;
            while let Some(steps) = without_barrier(&whole.steps, number) {
                barriers += 1;
                needed += usize::from(whole.differs(&steps, &start, &found));
                number += 1;
            }
        }
        files.hold(&file, &text, &now);
    }
    files.finish();
    // The others put faults in order, or are for threads that run at the same time.
    expect_test::expect!["61 of 77 barriers are needed"]
        .assert_eq(&format!("{needed} of {barriers} barriers are needed"));
}

#[test]
fn steps_that_break_a_rule_are_refused() {
    let (_, text) = cases("segments").into_iter().find(|(file, _)| file.ends_with("sum.eb")).unwrap();
    let (_, program, _) = read(&text, "extents");
    let facts = verify(&program).unwrap();
    let steps = Whole::of(&program, &facts, Family::C).steps;
    let par = |steps: &Steps| steps.iter().position(|step| matches!(step, Step::Par(..))).unwrap();
    let broken = |change: &dyn Fn(&mut Steps)| {
        let mut steps = steps.clone();
        let at = par(&steps);
        let Step::Par(_, inside) = &mut steps[at] else { unreachable!("it is a parallel loop") };
        change(inside);
        lawful(&steps).err().map(|Broken(rule)| rule)
    };
    assert_eq!(broken(&|_| {}), None);
    assert_eq!(broken(&|steps| steps.retain(|step| !matches!(step, Step::Iterations(..)))), Some(1));
    assert_eq!(broken(&|steps| steps.retain(|step| !matches!(step, Step::Barrier(_)))), Some(1));
    assert_eq!(broken(&|steps| steps.insert(0, steps[steps.len() - 2].clone())), Some(2));
    let mut steps = Whole::of(&program, &facts, Family::Cuda).steps;
    let at = par(&steps);
    let Step::Par(_, inside) = &mut steps[at] else { unreachable!("it is a parallel loop") };
    inside.retain(|step| !matches!(step, Step::CombineForAll(_)));
    assert_eq!(lawful(&steps), Err(Broken(7)));
    let (_, text) =
        cases("segments").into_iter().find(|(file, _)| file.ends_with("deferred_products.eb")).unwrap();
    let (_, program, _) = read(&text, "extents");
    let facts = verify(&program).unwrap();
    let mut steps = Whole::of(&program, &facts, Family::C).steps;
    steps.retain(|step| !matches!(step, Step::Settle(_)));
    assert_eq!(lawful(&steps), Err(Broken(5)));
    let alone = Step::Alone(vec![Step::Barrier(Barrier::Always)], Vec::new());
    assert_eq!(lawful(&vec![alone, Step::Barrier(Barrier::Always)]), Err(Broken(6)));
    assert_eq!(lawful(&vec![Step::Alone(Steps::new(), Vec::new())]), Err(Broken(6)));
}

/// One thread records what a loop needs for its way back, and uses it alone, if nobody else is on those tapes.
#[test]
fn one_thread_alone_is_on_tapes_that_nobody_else_uses() {
    let shown = |more: &str| {
        let text = format!(
            "driven program p(x: &mut Array1<f64>, steps: usize) {{
    let mut old = Array0::<f64>::undefined([]);
    for t in 1..steps {{
        let a = x[t];
        old[[]] = a;
        push(old);
        x[t] = a * x[t - 1];
    }}
    for t_back in 1..steps {{
        pop(old);
        let b = old[[]];
        x[steps - t_back] = b + x[steps - t_back - 1];
{more}    }}
}}
"
        );
        let program = ebbtide_ir::parse(&text).unwrap();
        let facts = verify(&program).unwrap();
        let target = Target { vector_bytes: 32, threads: Threads::Several };
        let mut text = Emitter::of(&program, &facts, Family::C, target);
        text.packed = PackedTapes::of(&program, &[&program.body]);
        assert_eq!(text.packed.groups.len(), 1);
        show(&program, &text.steps_of(&program.body))
    };
    assert_eq!(shown("").matches("thread 0 alone").count(), 2);
    let for_all = "        for i in par(0..x.len()) {\n            x[i] = x[i] * 0.5;\n        }\n";
    assert_eq!(shown(for_all).matches("thread 0 alone").count(), 0);
}

/// Values go straight to packed tapes: tapes that are pushed and popped together have one place, and threads meet before all of
/// them read what thread 0 has put there. An array that something else reads keeps its memory.
#[test]
fn values_on_packed_tapes_have_places_together() {
    let text = "driven program p(x: &mut Array1<f64>, steps: usize) {
    let mut one = Array0::<f64>::undefined([]);
    let mut two = Array0::<f64>::undefined([]);
    let mut read = Array0::<f64>::undefined([]);
    for t in 0..steps {
        let a = x[0];
        one[[]] = a;
        push(one);
        two[[]] = a * a;
        push(two);
        read[[]] = a;
        push(read);
        x[1] = read[[]];
    }
    for t_back in 0..steps {
        pop(one);
        let b = one[[]];
        pop(two);
        pop(read);
        x[2] = b + read[[]];
    }
}
";
    let program = ebbtide_ir::parse(text).unwrap();
    let facts = verify(&program).unwrap();
    let target = Target { vector_bytes: 32, threads: Threads::Several };
    let mut text = Emitter::of(&program, &facts, Family::C, target);
    text.packed = PackedTapes::of(&program, &[&program.body]);
    let groups: Vec<Vec<&str>> = text
        .packed
        .groups
        .iter()
        .map(|group| group.iter().map(|a| program.array(*a).name.as_str()).collect())
        .collect();
    assert_eq!(groups, [["one", "two"]]);
    let steps = text.steps_of(&program.body);
    expect![[r#"
        steps
          let v0
          for v2 in 0..v0, all meet in each iteration
            barrier
            let v4 = x[0]
            find the next place of tapes 0
            put v4 there for one
            let v5
            put v5 there for two
            take that place of tapes 0
            read[] = v4 by thread 0
            barrier
            push read
              keep the elements of read
            let v7 = read[]
            x[1] = v7 by thread 0
          for v9 in 0..v0, all meet in each iteration
            leave the last place of tapes 0
            take v10 from there for one
            pop read
            barrier
            let v12 = read[]
            let v13
            x[2] = v13 by thread 0
    "#]]
    .assert_eq(&format!("steps\n{}", show(&program, &steps)));
}
