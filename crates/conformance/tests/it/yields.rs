//! Part D of the contract: yield and resume, on every device.

use std::process::Command;
use std::task::Poll;

use ebbtide_ir::*;
use ebbtide_runtime::{Arg, Compiled, Device, Next, Status, Yielded, interpreter};

use crate::devices::{all, cpu};
use crate::programs::B;
use crate::stages::*;

/// Runs `check` on every device with the compiled tree and a world for it.
fn on_all(nodes: &[Node], fire: &[i32], check: impl Fn(&Compiled, World)) {
    for device in all() {
        let compiled = Compiled::new(&program(nodes), &device).unwrap();
        // A trace large enough for the second thread to be woken.
        check(&compiled, World::new(&device, 1 << 13, fire, &[0]));
    }
}

fn launch(compiled: &Compiled, world: &mut World) -> Yielded {
    compiled.launch(world.args()).unwrap().yielded().expect("a region fires")
}

fn done(status: ebbtide_runtime::Result<Status>) {
    assert_eq!(status.unwrap(), Status::Done);
}

fn counts(world: &World, n: usize) -> Vec<i32> {
    world.t.as_slice()[..n].to_vec()
}

/// Clears the flag and resumes until the program is done; how often it yielded.
fn finish(compiled: &Compiled, world: &mut World) -> usize {
    drive(compiled, &[], world, |_| Next::Resume).unwrap().len()
}

fn three_regions() -> Vec<Node> {
    (0..3).map(|k| region(k, vec![Node::Stage(k)])).collect()
}

enum Plain {
    WithoutRegion,
    WithRegion,
    WithFlag,
}

/// A time loop over a field, with or without a region around its parallel loop.
fn looped(plain: Plain) -> Program {
    let mut b = B::new("looped");
    let x = b.0.array("x", Type::F64, 1, Access::Write);
    let flag = b.0.array("flag", Type::I32, 0, Access::Read);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, n, one) = (b.index(0), b.0.dim(x, 0), b.real(1.0));
    let sum = b.0.local("sum", one);
    b.0.begin_for("t", zero, steps);
    match plain {
        Plain::WithoutRegion => {}
        Plain::WithRegion => b.0.begin_region(label(0), None, Undo::Everything),
        Plain::WithFlag => b.0.begin_region(label(0), Some(flag), Undo::Everything),
    }
    let i = b.0.begin_par(&[("i", zero, n)])[0];
    b.0.update(Combine::Add, x, &[i], one);
    b.0.end_par();
    let v = b.0.get(sum);
    let v = b.add(v, one);
    b.0.set(sum, v);
    if !matches!(plain, Plain::WithoutRegion) {
        b.0.end_region();
    }
    b.0.end_loop(None);
    let v = b.0.get(sum);
    b.0.store(x, &[zero], v);
    b.0.finish().unwrap()
}

/// The generated code without comments.
fn code(program: &Program) -> Vec<String> {
    let compiled = Compiled::new(program, &cpu(1)).unwrap();
    let source = compiled.source().unwrap().to_string();
    source.lines().filter(|line| !line.starts_with("/*")).map(str::to_string).collect()
}

#[test]
pub fn c25_a_region_without_yield_on_costs_nothing() {
    let without = code(&looped(Plain::WithoutRegion));
    for (with, same) in [(Plain::WithRegion, true), (Plain::WithFlag, false)] {
        let with = code(&looped(with));
        let differing = with.iter().zip(&without).find(|(a, b)| a != b);
        assert_eq!(differing.is_none() && with.len() == without.len(), same, "{differing:?}");
    }
}

#[test]
pub fn c26_labels_come_back_as_enum_and_variant() {
    on_all(&three_regions(), &[0, 9, 0], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!((at.label_name().family.as_str(), at.label_name().variant.as_str()), ("Stage", "S1"));
        assert_eq!(at.label_name(), &label(1));
        assert_ne!(at.label_name(), &Label { family: "Other".to_string(), variant: "S1".to_string() });
        assert_eq!(at.position().to_string(), "staged/Stage::S1");
    });
}

#[test]
pub fn c27_code_outside_labelled_regions_is_skipped_and_run_like_any_other() {
    let nodes = [
        Node::Bump,
        Node::Stage(0),
        Node::If(vec![Node::Stage(1)], vec![Node::Stage(2)]),
        region(0, vec![Node::Stage(3)]),
        Node::Bump,
        Node::If(vec![Node::Stage(4)], vec![Node::Stage(5)]),
    ];
    on_all(&nodes, &[1, 0], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!((counts(&world, 6), world.cursor.value()), (vec![1, 0, 1, 1, 0, 0], 1));
        World::set(&mut world.flag, 0);
        done(compiled.resume(&at, world.args()));
        assert_eq!((counts(&world, 6), world.cursor.value()), (vec![1, 0, 1, 2, 0, 1], 2));
        let x = *world.seen().trace.last().unwrap() / 64 % 64;
        assert_eq!(x, 13, "each scalar statement ran once");
    });
}

#[test]
pub fn c28_a_flag_of_zero_completes() {
    on_all(&three_regions(), &[0], |compiled, mut world| {
        done(compiled.launch(world.args()));
        assert_eq!(counts(&world, 3), [1, 1, 1]);
    });
}

#[test]
pub fn c29_after_a_yield_nothing_more_runs_and_every_loop_is_left() {
    let nodes = [
        Node::Stage(0),
        Node::For(
            3,
            vec![Node::Counted(0, 4, vec![Node::Stage(1), region(0, vec![Node::Stage(2)]), Node::Stage(4)])],
        ),
        Node::Stage(5),
    ];
    on_all(&nodes, &[0, 0, 0, 0, 0, -7, 0], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!(counts(&world, 6), [1, 6, 6, 0, 5, 0]);
        assert_eq!((at.label_name(), at.reason()), (&label(0), -7));
        assert_eq!(at.position().to_string(), "staged/for i=1/while=1/Stage::S0");
    });
}

#[test]
pub fn c30_the_first_flag_in_execution_order_wins() {
    on_all(&three_regions(), &[0, 2, 3], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!((at.label_name(), at.reason()), (&label(1), 2));
    });
}

#[test]
pub fn c31_the_flag_is_the_hosts_and_level_triggered() {
    let spot = Spot { label: 0, fires: Fires::Never, undo: Undoes::Everything };
    on_all(&[Node::Region(spot, vec![Node::Stage(0)]), Node::Stage(1)], &[0], |compiled, mut world| {
        World::set(&mut world.flag, 3);
        let at = launch(compiled, &mut world);
        assert_eq!(world.flag.value(), 3);
        let again = compiled.resume(&at, world.args()).unwrap().yielded().unwrap();
        assert_eq!((again.reason(), world.flag.value(), counts(&world, 2)), (3, 3, vec![0, 0]));
        World::set(&mut world.flag, 0);
        done(compiled.resume(&again, world.args()));
        assert_eq!((world.flag.value(), counts(&world, 2)), (0, vec![1, 1]));
    });
}

#[test]
pub fn c32_resume_skips_what_came_before_and_runs_the_region_again() {
    on_all(&three_regions(), &[0, 1, 0], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!(counts(&world, 3), [1, 1, 0]);
        World::set(&mut world.flag, 0);
        done(compiled.resume(&at, world.args()));
        assert_eq!(counts(&world, 3), [1, 2, 1]);
    });
    on_all(&three_regions(), &[0, 1, 0], |compiled, mut world| {
        let at = launch(compiled, &mut world);
        World::set(&mut world.flag, 0);
        done(compiled.resume(&at.to(label(2)).unwrap(), world.args()));
        assert_eq!(counts(&world, 3), [1, 1, 1]);
    });
}

#[test]
pub fn c33_in_loops_the_skip_applies_to_the_resumed_pass_alone() {
    for nodes in [[Node::For(3, three_regions())], [Node::Counted(0, 3, three_regions())]] {
        on_all(&nodes, &[0], |compiled, _| {
            for pass in 0..3 {
                let mut fire = vec![0; 3 * pass + 1];
                fire.extend([1, 0]);
                for (next, expected) in [(Next::Resume, [3, 4, 3]), (Next::To(label(2)), [3, 3, 3])] {
                    let mut world = World::new(compiled.device(), 1 << 13, &fire, &[0]);
                    let yields = drive(compiled, &nodes, &mut world, |_| next.clone()).unwrap();
                    assert_eq!(yields.len(), 1);
                    assert_eq!(counts(&world, 3), expected, "pass {pass} {next:?}");
                }
            }
        });
    }
}

#[test]
pub fn c34_moves_keep_shared_iterations_and_start_others_anew() {
    let nodes = [Node::For(
        3,
        vec![
            Node::For(2, vec![Node::Stage(0), region(0, vec![Node::Stage(1)])]),
            Node::For(2, vec![Node::Stage(2), region(1, vec![Node::Stage(4)])]),
        ],
    )];
    // The second region of the second pass yields, and the host goes on at the first one.
    let fire = [0, 0, 0, 0, 0, 0, 0, 1, 0];
    on_all(&nodes, &fire, |compiled, mut world| {
        let at = launch(compiled, &mut world);
        assert_eq!(at.position().to_string(), "staged/for i=1/for i=1#1/Stage::S1");
        World::set(&mut world.flag, 0);
        let moved = at.to(label(0)).unwrap();
        assert_eq!(moved.position().to_string(), "staged/for i=1/for i=0/Stage::S0");
        done(compiled.resume(&moved, world.args()));
        // That pass enters the first loop at its region, then runs as usual.
        assert_eq!(counts(&world, 5), [4 + 1 + 2, 4 + 2 + 2, 4 + 2 + 2, 0, 4 + 2 + 2]);
    });
}

#[test]
pub fn c34_resume_at_needs_no_yield_and_asks_no_condition() {
    let nodes = [
        Node::Stage(0),
        Node::While(vec![Node::Stage(1), region(0, vec![Node::Stage(2)])]),
        Node::For(2, vec![Node::Stage(4), region(1, vec![Node::Stage(5)])]),
    ];
    on_all(&nodes, &[0], |compiled, mut world| {
        // The temporary and the local before the labels are live there.
        let error = compiled.resume_at(label(0), world.args()).unwrap_err().to_string();
        assert!(error.contains("needs local `x`, temporary `scratch`"), "{error}");
    });
    let program = bare(&[Where::Outside, Where::While, Where::For]);
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut t, mut flag) = (device.zeros::<i32, 1>([3]).unwrap(), device.scalar(0).unwrap());
        let mut run = |k: usize| {
            t.fill(0).unwrap();
            let args =
                vec![Arg::Write(t.any_mut()), Arg::Write(flag.any_mut()), Arg::Scalar(Literal::from(3usize))];
            done(compiled.resume_at(label(k), args));
            t.to_vec()
        };
        assert_eq!(run(0), [1, 0, 3]);
        assert_eq!(run(1), [0, 1, 3], "a `while` is entered without asking");
        assert_eq!(run(2), [0, 0, 3], "a `for` starts at its first iteration");
    }
}

#[derive(Clone, Copy)]
enum Where {
    Outside,
    While,
    For,
}

/// Regions that count themselves, without locals, each in another place; `while` conditions are false.
fn bare(places: &[Where]) -> Program {
    let mut b = B::new("bare");
    let t = b.0.array("t", Type::I32, 1, Access::Write);
    let flag = b.0.array("flag", Type::I32, 0, Access::Write);
    let n = b.0.scalar("n", Type::Index);
    let (zero, one) = (b.index(0), b.0.literal(Literal::from(1i32)));
    for (k, place) in places.iter().enumerate() {
        match place {
            Where::Outside => {}
            Where::While => {
                b.0.begin_while();
                let never = b.0.compare(Compare::Ne, zero, zero);
                b.0.while_condition(never);
            }
            Where::For => drop(b.0.begin_for("i", zero, n)),
        }
        let at = b.index(k as i64);
        b.0.begin_region(label(k), Some(flag), Undo::Nothing);
        b.0.update(Combine::Add, t, &[at], one);
        b.0.end_region();
        if !matches!(place, Where::Outside) {
            b.0.end_loop(None);
        }
    }
    b.0.finish().unwrap()
}

#[test]
pub fn c34_other_arguments_at_resume_are_those_of_the_program_from_there_on() {
    // for i in 0..n { region { x[i % m] += a } } where m is the length of x.
    let mut b = B::new("others");
    let x = b.0.array("x", Type::F64, 1, Access::Write);
    let flag = b.0.array("flag", Type::U32, 0, Access::Read);
    let (a, n) = (b.0.scalar("a", Type::F64), b.0.scalar("n", Type::Index));
    let (m, zero) = (b.0.dim(x, 0), b.index(0));
    let i = b.0.begin_for("i", zero, n);
    b.0.begin_region(label(0), Some(flag), Undo::Nothing);
    let at = b.rem(i, m);
    b.0.update(Combine::Add, x, &[at], a);
    b.0.end_region();
    b.0.end_loop(None);
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let mut x = device.array(&[0.0, 0.0]).unwrap();
        let set = device.scalar(4_000_000_000u32).unwrap();
        let scalars = |a: f64, n: usize| [Arg::Scalar(Literal::from(a)), Arg::Scalar(Literal::from(n))];
        let args = [Arg::Write(x.any_mut()), Arg::Read(set.any())].into_iter().chain(scalars(1.0, 5));
        let at = compiled.launch(args.collect()).unwrap().yielded().unwrap();
        assert_eq!(at.reason(), 4_000_000_000);
        // A longer array, another flag, another summand; the bounds of the loop are those of its entry.
        let mut longer = device.array(&[0.0; 4]).unwrap();
        let clear = device.scalar(0u32).unwrap();
        let args =
            [Arg::Write(longer.any_mut()), Arg::Read(clear.any())].into_iter().chain(scalars(10.0, 99));
        done(compiled.resume(&at, args.collect()));
        assert_eq!(
            (x.to_vec(), longer.to_vec()),
            (vec![1.0, 0.0], vec![20.0, 10.0, 10.0, 10.0]),
            "{device:?}"
        );
    }
}

#[test]
pub fn c35_errors_say_what_is_wrong() {
    for device in all() {
        let compiled = Compiled::new(&program(&three_regions()), &device).unwrap();
        let mut world = World::new(&device, 100, &[1, 0], &[0]);
        let at = launch(&compiled, &mut world);
        let unknown = Label { family: "Stage".to_string(), variant: "Nowhere".to_string() };
        let message =
            "there is no label `Stage::Nowhere`; its labels are `Stage::S0`, `Stage::S1`, `Stage::S2`";
        let error = at.to(&unknown).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        let error = compiled.resume_at(&unknown, world.args()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");

        let other = Compiled::new(&program(&[region(0, vec![Node::Stage(0)])]), &device).unwrap();
        let error = other.resume(&at, world.args()).unwrap_err().to_string();
        assert!(error.contains("asked to resume at `Stage::S0`, where program `staged` yielded"), "{error}");

        let never = Compiled::new(&program(&[Node::Stage(0)]), &device).unwrap();
        let error = never.resume_at(label(0), world.args()).unwrap_err().to_string();
        assert!(error.contains("it has no labelled region"), "{error}");
    }
}

#[test]
pub fn c34_a_program_that_never_yields_can_begin_at_its_labels() {
    let mut b = B::new("unflagged");
    let x = b.0.array("x", Type::I32, 1, Access::Write);
    for (k, by) in [1, 10, 100].into_iter().enumerate() {
        b.0.begin_region(label(k), None, Undo::Nothing);
        let (zero, n, by) = (b.index(0), b.0.dim(x, 0), b.0.literal(Literal::from(by)));
        let i = b.0.begin_par(&[("i", zero, n)])[0];
        b.0.update(Combine::Add, x, &[i], by);
        b.0.end_par();
        b.0.end_region();
    }
    let program = b.0.finish().unwrap();
    for device in all() {
        let never = Compiled::new(&program, &device).unwrap();
        let mut x = device.array(&[0; 5]).unwrap();
        done(never.resume_at(label(1), vec![Arg::Write(x.any_mut())]));
        assert_eq!(x.to_vec(), [110; 5]);
        done(never.launch(vec![Arg::Write(x.any_mut())]));
        done(never.resume_at(label(2), vec![Arg::Write(x.any_mut())]));
        assert_eq!(x.to_vec(), [321; 5]);
    }
}

/// A program with regions on a flag of this type and rank, called with these labels, nested or in a row.
fn flagged(ty: Type, rank: usize, labels: &[usize], nested: bool) -> Result<Program, Error> {
    let mut b = Builder::new("flagged");
    let flag = b.array("flag", ty, rank, Access::Write);
    for k in labels {
        b.begin_region(label(*k), Some(flag), Undo::Nothing);
        if !nested {
            b.end_region();
        }
    }
    labels.iter().filter(|_| nested).for_each(|_| b.end_region());
    b.finish()
}

#[test]
pub fn c35_ill_formed_regions_are_build_errors() {
    let error = |program: Result<Program, Error>| program.unwrap_err().to_string();
    for (ty, rank) in [(Type::F32, 0), (Type::F64, 0), (Type::I64, 0), (Type::I32, 1), (Type::Bool, 2)] {
        let error = error(flagged(ty, rank, &[0], false));
        assert!(error.contains("a flag is an Array0 of i32, u32 or bool"), "{error}");
    }
    for ty in [Type::I32, Type::U32, Type::Bool] {
        assert!(flagged(ty, 0, &[0, 1], false).is_ok());
    }
    assert!(error(flagged(Type::I32, 0, &[0, 1], true)).contains("regions do not nest"));
    assert!(error(flagged(Type::I32, 0, &[3, 3], false)).contains("`Stage::S3` is used twice"));
    let mut b = Builder::new("own_flag");
    let flag = b.temp("flag", Type::I32, &[]);
    b.begin_region(label(0), Some(flag), Undo::Nothing);
    b.end_region();
    assert!(error(b.finish()).contains("the flag is the host's, so it must be a parameter"));
}

#[test]
pub fn c35_a_label_at_several_positions_is_listed() {
    let mut b = B::new("twice");
    let flag = b.0.array("flag", Type::Bool, 0, Access::Read);
    let (zero, two) = (b.index(0), b.index(2));
    b.0.begin_for("t", zero, two);
    for _ in 0..2 {
        b.0.begin_call("inner");
        b.0.begin_region(label(0), Some(flag), Undo::Nothing);
        b.0.end_region();
        b.0.end_call();
    }
    b.0.end_loop(None);
    let device = interpreter();
    let compiled = Compiled::new(&b.0.finish().unwrap(), &device).unwrap();
    let mut flag = device.scalar(true).unwrap();
    let at = compiled.launch(vec![Arg::Read(flag.any())]).unwrap().yielded().unwrap();
    assert_eq!((at.position().to_string(), at.reason()), ("twice/for t=0/inner/Stage::S0".to_string(), 1));
    let error = at.to(label(0)).unwrap_err().to_string();
    let positions = "several positions: twice/for t=0/inner/Stage::S0, twice/for t=0/inner#1/Stage::S0";
    assert!(error.contains(positions), "{error}");
    flag.fill(false).unwrap();
    done(compiled.resume(&at, vec![Arg::Read(flag.any())]));
}

#[test]
pub fn c36_flags_and_counters_may_be_members_of_structs() {
    let mut b = B::new("members");
    let count = b.0.array("w.inner.count", Type::I32, 0, Access::Write);
    let flag = b.0.array("w.inner.deep.flag", Type::Bool, 0, Access::Write);
    let one = b.0.literal(Literal::from(1i32));
    b.0.begin_region(label(0), Some(flag), Undo::Nothing);
    b.0.update(Combine::Add, count, &[], one);
    b.0.end_region();
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut count, mut flag) = (device.scalar(0).unwrap(), device.scalar(true).unwrap());
        let at = compiled.launch(vec![Arg::Write(count.any_mut()), Arg::Write(flag.any_mut())]);
        let at = at.unwrap().yielded().unwrap();
        flag.fill(false).unwrap();
        done(compiled.resume(&at, vec![Arg::Write(count.any_mut()), Arg::Write(flag.any_mut())]));
        assert_eq!(count.value(), 2);
    }
}

#[test]
pub fn c37_a_yield_of_one_program_affects_no_other() {
    let b = [Node::For(5, vec![Node::Stage(0), region(0, vec![Node::Stage(1)])])];
    for device in all() {
        let first = Compiled::new(&program(&three_regions()), &device).unwrap();
        let second = Compiled::new(&program(&b), &device).unwrap();
        let mut world = World::new(&device, 100, &[1], &[0]);
        let at = launch(&first, &mut world);
        let mut other = World::new(&device, 100, &[0], &[0]);
        done(second.launch(other.args()));
        assert_eq!(counts(&other, 2), [5, 5]);
        // And another launch of the same program is its own.
        let mut fresh = World::new(&device, 100, &[0], &[0]);
        done(first.launch(fresh.args()));
        assert_eq!(counts(&fresh, 3), [1, 1, 1]);
        let mut quiet = World::new(&device, 100, &[0], &[0]);
        done(first.resume(&at, quiet.args()));
        assert_eq!(counts(&quiet, 3), [1, 1, 1]);
    }
}

/// `n` passes, counted by the engine or by the user.
fn passes(user: Option<usize>, n: usize, body: Vec<Node>) -> Node {
    match user {
        None => Node::For(n, body),
        Some(counter) => Node::Counted(counter, n as i32, body),
    }
}

/// Checks the counts after one yield in each possible visit of the region.
fn c38(nodes: &[Node], visits: usize, expected: &[i32]) {
    on_all(nodes, &[0], |compiled, _| {
        for visit in 0..visits {
            let mut fire = vec![0; visit];
            fire.extend([1, 0]);
            let mut world = World::new(compiled.device(), 1 << 13, &fire, &[0]);
            assert_eq!(finish(compiled, &mut world), 1);
            assert_eq!(counts(&world, expected.len()), expected, "visit {visit} {nodes:?}");
        }
    });
}

#[test]
pub fn c38_resume_is_exact_after_a_nested_loop() {
    for user in [false, true] {
        let counter = |k: usize| user.then_some(k);
        let inner = passes(counter(1), 2, vec![Node::Stage(1)]);
        let body =
            vec![Node::Stage(0), inner, Node::Stage(2), region(0, vec![Node::Stage(3)]), Node::Stage(4)];
        c38(&[passes(counter(0), 3, body)], 3, &[3, 6, 3, 4, 3]);
    }
}

#[test]
pub fn c38_resume_is_exact_after_a_loop() {
    for user in [None, Some(0)] {
        let nodes = [
            passes(user, 3, vec![Node::Stage(0)]),
            Node::Stage(1),
            region(0, vec![Node::Stage(2)]),
            Node::Stage(3),
        ];
        c38(&nodes, 1, &[3, 1, 2, 1]);
    }
}

#[test]
pub fn c38_resume_is_exact_after_a_sibling_loop() {
    for user in [false, true] {
        let counter = |k: usize| user.then_some(k);
        let second = vec![Node::Stage(1), region(0, vec![Node::Stage(2)]), Node::Stage(3)];
        let nodes = [passes(counter(0), 2, vec![Node::Stage(0)]), passes(counter(1), 3, second)];
        c38(&nodes, 3, &[2, 3, 4, 3]);
    }
}

#[test]
pub fn c39_a_yielded_pass_consumes_no_counter() {
    // Every visit of the first six yields; each of three passes still happens once.
    let body = vec![Node::Stage(0), region(0, vec![Node::Stage(1)]), Node::Stage(2)];
    for node in [Node::For(3, body.clone()), Node::Counted(0, 3, body.clone())] {
        on_all(&[node], &[1, 1, 0, 1, 1, 1, 1, 0], |compiled, mut world| {
            assert_eq!(finish(compiled, &mut world), 6);
            assert_eq!(counts(&world, 3), [3, 9, 3]);
        });
    }
}

#[test]
pub fn c40_a_loop_inside_a_region_finishes_before_the_flag_is_looked_at() {
    let spot = Spot { label: 0, fires: Fires::Never, undo: Undoes::Nothing };
    let inside = vec![Node::For(3, vec![Node::Counted(0, 2, vec![Node::Stage(0)])])];
    on_all(&[Node::Region(spot, inside), Node::Stage(1)], &[0], |compiled, mut world| {
        World::set(&mut world.flag, 1);
        let at = launch(compiled, &mut world);
        assert_eq!(counts(&world, 2), [6, 0]);
        World::set(&mut world.flag, 0);
        done(compiled.resume(&at, world.args()));
        assert_eq!(counts(&world, 2), [12, 1]);
    });
}

#[test]
pub fn c41_statuses_are_never_missing_or_stale() {
    on_all(&three_regions(), &[0], |compiled, _| {
        let device = compiled.device();
        for (fire, expected) in
            [(vec![1, 0], Some(0)), (vec![0], None), (vec![0, 0, 1, 0], Some(2)), (vec![0], None)]
        {
            let mut world = World::new(device, 100, &fire, &[0]);
            let at = compiled.launch(world.args()).unwrap().yielded();
            assert_eq!(at.map(|at| at.label_name().clone()), expected.map(label));
        }
    });
}

fn stored_tree() -> Vec<Node> {
    vec![
        Node::Bump,
        Node::Let(0),
        Node::ForData(
            1,
            vec![
                Node::Let(2),
                Node::Stage(1),
                region(0, vec![Node::Bump, Node::Stage(2)]),
                Node::Use(0),
                Node::Use(2),
            ],
        ),
        Node::Use(1),
        Node::Stage(3),
    ]
}

const STORED_DATA: [i32; 6] = [5, 3, 7, 8, 9, 0];

#[test]
pub fn c42_a_stored_yield_is_resumed_by_a_fresh_process() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = Compiled::new(&program(&stored_tree()), &cpu(1)).unwrap();
    let mut world = World::new(compiled.device(), 1 << 13, &[0, 1, 0], &STORED_DATA);
    let at = launch(&compiled, &mut world);
    at.save(folder.path().join("yielded.safetensors")).unwrap();
    let arrays: Vec<String> = [world.len.value(), world.visits.value(), world.cursor.value()]
        .iter()
        .chain(&world.seen().trace)
        .map(|n| n.to_string())
        .collect();
    std::fs::write(folder.path().join("world.txt"), arrays.join(" ")).unwrap();
    World::set(&mut world.flag, 0);
    done(compiled.resume(&at, world.args()));

    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "yields::resume_of_a_stored_yield_in_a_process_of_its_own",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("EBBTIDE_STORED", folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{told}\n{}", String::from_utf8_lossy(&child.stderr));
    let trace = format!("trace {:?}", world.seen().trace);
    assert!(told.contains(&trace), "{told}\nhas not {trace}");
}

#[test]
#[ignore = "run by c42 in a process of its own"]
fn resume_of_a_stored_yield_in_a_process_of_its_own() {
    let Some(folder) = std::env::var_os("EBBTIDE_STORED").map(std::path::PathBuf::from) else { return };
    let text = std::fs::read_to_string(folder.join("world.txt")).unwrap();
    let numbers: Vec<i32> = text.split(' ').map(|n| n.parse().unwrap()).collect();
    // On another thread count, and the very first call.
    let compiled = Compiled::new(&program(&stored_tree()), &cpu(2)).unwrap();
    let mut world = World::new(compiled.device(), 1 << 13, &[0, 1, 0], &STORED_DATA);
    World::set(&mut world.len, numbers[0]);
    World::set(&mut world.visits, numbers[1]);
    World::set(&mut world.cursor, numbers[2]);
    world.trace.as_mut_slice()[..numbers.len() - 3].copy_from_slice(&numbers[3..]);
    let at = compiled.load(folder.join("yielded.safetensors")).unwrap();
    assert_eq!(at.position().to_string(), "staged/for j=1/Stage::S0");
    done(compiled.resume(&at, world.args()));
    println!("trace {:?}", world.seen().trace);
}

#[test]
pub fn c42_a_stored_yield_of_another_program_or_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("yielded.safetensors");
    let device = interpreter();
    let compiled = Compiled::new(&program(&stored_tree()), &device).unwrap();
    let mut world = World::new(&device, 1 << 13, &[1, 0], &STORED_DATA);
    let original = launch(&compiled, &mut world);
    original.save(&path).unwrap();
    assert_eq!(compiled.load(&path).unwrap(), original);

    let other = Compiled::new(&program(&three_regions()), &device).unwrap();
    let error = other.load(&path).unwrap_err().to_string();
    assert!(error.contains("it belongs to another program"), "{error}");

    let whole = std::fs::read(&path).unwrap();
    // Every byte that says anything; the padding of the header says nothing.
    let padding = |at: usize| whole[at] == b' ';
    for at in (0..whole.len()).filter(|at| !padding(*at)).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        // The name of an empty note may change; nothing that was stored may.
        if let Ok(loaded) = compiled.load(&path) {
            loaded.save(&path).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole, "byte {at} of {}", whole.len());
        }
    }
    for len in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(compiled.load(&path).is_err(), "{len} bytes of {}", whole.len());
    }
    assert!(compiled.load(folder.path().join("missing")).is_err());
}

#[test]
pub fn c42_a_yield_moves_between_devices() {
    let compiled: Vec<Compiled> =
        all().iter().map(|device| Compiled::new(&program(&stored_tree()), device).unwrap()).collect();
    let mut seen: Vec<Seen> = Vec::new();
    for from in &compiled {
        for to in &compiled {
            let mut world = World::new(from.device(), 1 << 13, &[0, 1, 0], &STORED_DATA);
            let at = launch(from, &mut world);
            let mut other = World::new(to.device(), 1 << 13, &[0, 1, 0], &STORED_DATA);
            for (a, b) in
                [(&mut other.t, &world.t), (&mut other.trace, &world.trace), (&mut other.field, &world.field)]
            {
                a.copy_from(b).unwrap();
            }
            for (a, b) in [
                (&mut other.len, &world.len),
                (&mut other.visits, &world.visits),
                (&mut other.cursor, &world.cursor),
            ] {
                a.copy_from(b).unwrap();
            }
            done(to.resume(&at, other.args()));
            seen.push(other.seen());
        }
    }
    assert!(seen.iter().all(|s| *s == seen[0]), "{seen:?}");
}

#[test]
pub fn c42_a_forged_yield_is_refused() {
    use ebbtide_snapshot::{Checkpoint, Position, fs::Disks, read_snapshot, write_snapshot};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("yielded.safetensors");
    let device = interpreter();
    let compiled = Compiled::new(&program(&stored_tree()), &device).unwrap();
    let mut world = World::new(&device, 1 << 13, &[0, 1, 0], &STORED_DATA);
    launch(&compiled, &mut world).save(&path).unwrap();
    let mut checkpoint = Checkpoint::default();
    let told = read_snapshot(&Disks, &path, &mut checkpoint).unwrap();
    let state = &checkpoint.state;
    // The same file again, its checksums right, but one thing in it another.
    let forge = |name: &str, ints: Option<(Vec<usize>, Vec<i64>)>, position: &str| {
        let mut forgery = Checkpoint::at(position.parse::<Position>().unwrap());
        let forged = &mut forgery.state;
        for array in state.arrays() {
            match (&ints, array.name == name) {
                (Some((shape, ints)), true) if array.dtype.to_string() == "i64" => {
                    forged.put_shaped(name, shape, ints).unwrap()
                }
                (Some((shape, ints)), true) => {
                    let ints: Vec<u64> = ints.iter().map(|n| *n as u64).collect();
                    forged.put_shaped(name, shape, &ints).unwrap()
                }
                (None, true) => {}
                _ if array.name.starts_with("temp.") => forged
                    .put_shaped(array.name, array.shape, &state.get_vec::<i32>(array.name).unwrap())
                    .unwrap(),
                _ => match array.dtype.to_string().as_str() {
                    "u32" => forged.put_scalar(array.name, state.scalar::<u32>(array.name).unwrap()).unwrap(),
                    "i64" => forged
                        .put_shaped(array.name, array.shape, &state.get_vec::<i64>(array.name).unwrap())
                        .unwrap(),
                    "u8" => forged
                        .put_shaped(array.name, array.shape, &state.get_vec::<u8>(array.name).unwrap())
                        .unwrap(),
                    _ => forged
                        .put_shaped(array.name, array.shape, &state.get_vec::<u64>(array.name).unwrap())
                        .unwrap(),
                },
            }
        }
        write_snapshot(&Disks, &path, &told, &forgery).unwrap();
        compiled.load(&path).map_err(|e| e.to_string())
    };
    let here = checkpoint.position.to_string();
    assert!(forge("nothing", None, &here).is_ok(), "an honest copy is fine");
    for name in ["yielded", "reason", "kept", "values", "locals", "bounds", "temp.12.scratch"] {
        assert!(forge(name, None, &here).is_err(), "without {name}");
    }
    for place in ["staged/for j=3/Stage::S0", "staged/for j=0", "staged/for j=1/Stage::S0#1", "staged", "x/y"]
    {
        assert!(forge("nothing", None, place).is_err(), "{place}");
    }
    assert!(forge("kept", Some((vec![], vec![2])), &here).is_err());
    assert!(forge("bounds", Some((vec![1, 2], vec![0, 1])), &here).is_err());
    assert!(
        forge("bounds", Some((vec![1, 2], vec![i64::MIN, i64::MAX])), &here).is_ok(),
        "odd, but harmless"
    );
    assert!(forge("bounds", Some((vec![0, 2], vec![])), &here).is_err());
    assert!(forge("values", Some((vec![1, 2], vec![i64::MAX, 1])), &here).is_err());
    assert!(forge("locals", Some((vec![1, 2], vec![77, 1])), &here).is_err());
}

#[test]
pub fn c43_a_pending_launch_can_be_polled_waited_for_and_dropped() {
    on_all(&three_regions(), &[0, 1, 0], |compiled, mut world| {
        let pending = compiled.launch_async(world.args()).unwrap();
        let _ = pending.poll();
        let at = pending.wait().unwrap().yielded().unwrap();
        assert_eq!((at.label_name(), counts(&world, 3)), (&label(1), vec![1, 1, 0]));
        World::set(&mut world.flag, 0);
        // Dropped: the launch goes on, and who reads an array waits for it.
        drop(compiled.resume_async(&at, world.args()).unwrap());
        assert_eq!(counts(&world, 3), [1, 2, 1]);
        // Forgotten, with an array dropped while the launch writes it: the next launch comes after it.
        std::mem::forget(compiled.launch_async(world.args()).unwrap());
        drop(world);
        let mut next = World::new(compiled.device(), 1 << 13, &[0, 0, 1], &[0]);
        let at = launch(compiled, &mut next);
        assert_eq!((at.label_name(), counts(&next, 3)), (&label(2), vec![1, 1, 1]));
    });
}

#[test]
pub fn c43_arrays_wait_for_their_writers_and_readers() {
    let mut b = B::new("copy_slowly");
    let from = b.0.array("from", Type::I32, 0, Access::Read);
    let to = b.0.array("to", Type::I32, 0, Access::Write);
    let spare = b.0.array("spare", Type::I32, 0, Access::Write);
    let (zero, n) = (b.index(0), b.index(20_000));
    b.0.begin_for("t", zero, n);
    let v = b.0.load(from, &[]);
    b.0.update(Combine::Add, to, &[], v);
    b.0.end_loop(None);
    b.0.swap(to, spare);
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let mut from = device.scalar(1).unwrap();
        let mut to = device.scalar(0).unwrap();
        let mut spare = device.scalar(-1).unwrap();
        let args = vec![Arg::Read(from.any()), Arg::Write(to.any_mut()), Arg::Write(spare.any_mut())];
        let pending = compiled.launch_async(args).unwrap();
        // Reading what is read does not wait; writing it does.
        assert_eq!(from.value(), 1);
        from.fill(1000).unwrap();
        assert_eq!(pending.poll(), Poll::Ready(()));
        assert_eq!((to.value(), spare.value()), (-1, 20_000));
        done(pending.wait());
    }
}

#[test]
pub fn c43_a_launch_that_was_forgotten_holds_up_nobody() {
    let mut b = B::new("count");
    let to = b.0.array("to", Type::I32, 0, Access::Write);
    let steps = b.0.scalar("steps", Type::Index);
    let (zero, one) = (b.index(0), b.0.literal(Literal::from(1i32)));
    b.0.begin_for("t", zero, steps);
    b.0.update(Combine::Add, to, &[], one);
    b.0.end_loop(None);
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let steps = |n: i64| Arg::Scalar(Literal::index(n));
        let mut long = device.scalar(0).unwrap();
        std::mem::forget(compiled.launch_async(vec![Arg::Write(long.any_mut()), steps(200_000)]).unwrap());
        drop(long);
        let mut short = device.scalar(0).unwrap();
        done(compiled.launch(vec![Arg::Write(short.any_mut()), steps(3)]));
        assert_eq!(short.value(), 3);
    }
}

#[test]
pub fn c44_undo_leaves_nothing_of_an_abandoned_region_but_its_flag() {
    let body = |undo| {
        let spot = Spot { label: 0, fires: Fires::Never, undo };
        [Node::For(2, vec![Node::Region(spot, vec![Node::Bump, Node::Swap, Node::Stage(3)])]), Node::Stage(1)]
    };
    on_all(&body(Undoes::Everything), &[0], |compiled, mut world| {
        let before = world.seen();
        World::set(&mut world.flag, 6);
        let at = launch(compiled, &mut world);
        assert_eq!((world.seen(), world.flag.value()), (before, 6));
        World::set(&mut world.flag, 0);
        done(compiled.resume(&at, world.args()));
        let mut plain = World::new(compiled.device(), 1 << 13, &[0], &[0]);
        done(compiled.launch(plain.args()));
        assert_eq!(world.seen(), plain.seen());
    });
    // Arrays that are not named keep their writes.
    on_all(&body(Undoes::Trace), &[0], |compiled, mut world| {
        World::set(&mut world.flag, 6);
        let _at = launch(compiled, &mut world);
        let seen = world.seen();
        assert_eq!((seen.t, seen.trace, seen.field, seen.swapped), (vec![0; STAGES], vec![], 3, [1001, 0]));
    });
}

#[test]
pub fn c44_drive_repairs_and_leaves() {
    on_all(&three_regions(), &[1, 1, 0, 1, 0], |compiled, mut world| {
        let mut seen = Vec::new();
        let status = compiled.drive(world.args(), |at, args| {
            seen.push(at.label_name().variant.clone());
            if let Arg::Write(flag) = &mut args[4] {
                flag.as_mut_slice::<i32>().unwrap().fill(0);
            }
            Ok(())
        });
        done(status);
        assert_eq!((seen.join(" "), counts(&world, 3)), ("S0 S0 S1".to_string(), vec![3, 2, 1]));
        World::set(&mut world.visits, 0);
        let left = compiled.drive(world.args(), |_, _| Ok(Next::Leave)).unwrap().yielded().unwrap();
        assert_eq!(left.label_name(), &label(0));
    });
}

/// Temporaries come and go with the scopes of the program; their shapes follow the arguments.
#[test]
pub fn temporaries_stay_where_they_are_live_and_follow_the_arguments_where_they_are_made_anew() {
    let build = |inside: bool| {
        let mut b = B::new("temporaries");
        let x = b.0.array("x", Type::I32, 1, Access::Write);
        let flag = b.0.array("flag", Type::I32, 0, Access::Read);
        let (zero, two) = (b.index(0), b.index(2));
        let one = b.0.literal(Literal::from(1i32));
        b.0.begin_for("t", zero, two);
        let n = b.0.dim(x, 0);
        let make = |b: &mut B| b.0.temp("copy", Type::I32, &[n]);
        let outside = (!inside).then(|| make(&mut b));
        b.0.begin_region(label(0), Some(flag), Undo::Nothing);
        let copy = match outside {
            Some(copy) => copy,
            None => make(&mut b),
        };
        let i = b.0.begin_par(&[("i", zero, n)])[0];
        b.0.update(Combine::Add, copy, &[i], one);
        let v = b.0.load(copy, &[i]);
        b.0.end_par();
        let _ = v;
        let i = b.0.begin_par(&[("i", zero, n)])[0];
        let v = b.0.load(copy, &[i]);
        b.0.update(Combine::Add, x, &[i], v);
        b.0.end_par();
        b.0.end_region();
        b.0.end_loop(None);
        b.0.finish()
    };
    let run = |device: &Device, inside: bool, lengths: [usize; 2]| {
        let compiled = Compiled::new(&build(inside).unwrap(), device).unwrap();
        let mut x = device.zeros::<i32, 1>([lengths[0]]).unwrap();
        let (set, clear) = (device.scalar(1).unwrap(), device.scalar(0).unwrap());
        let at = compiled.launch(vec![Arg::Write(x.any_mut()), Arg::Read(set.any())]);
        let at = at.unwrap().yielded().unwrap();
        let mut y = device.zeros::<i32, 1>([lengths[1]]).unwrap();
        y.as_mut_slice()[..x.len()].copy_from_slice(x.as_slice());
        let status = compiled.resume(&at, vec![Arg::Write(y.any_mut()), Arg::Read(clear.any())]);
        status.map(|_| y.to_vec()).map_err(|e| e.to_string())
    };
    for device in all() {
        // Live: it holds 1 from the abandoned execution, so the second one adds 2; then a fresh one adds 1.
        assert_eq!(run(&device, false, [2, 2]).unwrap(), [4, 4]);
        let error = run(&device, false, [2, 3]).unwrap_err();
        assert!(error.contains("temporary `copy` has shape [2] where the program yielded"), "{error}");
        assert_eq!(run(&device, true, [2, 2]).unwrap(), [3, 3]);
        assert_eq!(run(&device, true, [2, 3]).unwrap(), [3, 3, 2]);
    }
}
