//! Part C of the contract: loops on the device.

use ebbtide_cpu::{Cache, Options};
use ebbtide_ir::*;
use ebbtide_runtime::{Arg, Compiled, Status};

use crate::devices::all;
use crate::programs::B;
use crate::stages::{Node, World, program};

/// The counts of stages after a run without yields, the same on all devices.
fn counts(nodes: &[Node], data: &[i32]) -> Vec<i32> {
    let mut found: Option<Vec<i32>> = None;
    for device in all() {
        let compiled = Compiled::new(&program(nodes), &device).unwrap();
        let mut world = World::new(&device, 1 << 13, &[0], data);
        assert_eq!(compiled.launch(world.args()).unwrap(), Status::Done);
        let t = world.t.to_vec();
        assert_eq!(found.get_or_insert(t.clone()), &t, "{device:?}");
    }
    found.unwrap()
}

#[test]
pub fn c18_loop_runs_at_least_once_and_while_may_run_never() {
    let nodes = [Node::Loop(vec![Node::Stage(0)]), Node::While(vec![Node::Stage(1)])];
    assert_eq!(counts(&nodes, &[0])[..2], [1, 0]);
    assert_eq!(counts(&nodes, &[0, 1, 1, 0, 1, 1, 1, 0])[..2], [3, 0]);
}

#[test]
pub fn c19_conditions_compare_elements_counters_and_booleans() {
    let mut b = B::new("conditions");
    let x = b.0.array("x", Type::F64, 0, Access::Write);
    let go = b.0.array("go", Type::Bool, 0, Access::Write);
    let n = b.0.array("n", Type::I64, 1, Access::Write);
    let (one, two) = (b.real(1.0), b.real(2.0));
    let (at0, at1) = (b.index(0), b.index(1));
    b.0.begin_while();
    let v = b.0.load(go, &[]);
    b.0.while_condition(v);
    b.0.update(Combine::Add, x, &[], one);
    let v = b.0.load(x, &[]);
    let limit = b.real(4.5);
    let more = b.0.compare(Compare::Lt, v, limit);
    b.0.store(go, &[], more);
    b.0.end_loop(None);
    b.0.begin_loop();
    let v = b.0.load(x, &[]);
    let v = b.mul(v, two);
    b.0.store(x, &[], v);
    let step = b.0.literal(Literal::from(1i64));
    b.0.update(Combine::Add, n, &[at0], step);
    let (left, right) = (b.0.load(n, &[at0]), b.0.load(n, &[at1]));
    let end = b.0.compare(Compare::Ge, left, right);
    b.0.end_loop(Some(end));
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let mut x = device.scalar(0.0).unwrap();
        let mut go = device.scalar(true).unwrap();
        let mut n = device.array(&[0i64, 3]).unwrap();
        let args = vec![Arg::Write(x.any_mut()), Arg::Write(go.any_mut()), Arg::Write(n.any_mut())];
        assert!(compiled.launch(args).unwrap().is_done());
        assert_eq!((x.value(), go.value(), n.to_vec()), (5.0 * 8.0, false, vec![3, 3]), "{device:?}");
    }
}

#[test]
pub fn c20_nests_three_deep_siblings_and_run_once_work() {
    let nodes = [
        Node::Stage(0),
        Node::For(
            2,
            vec![
                Node::Stage(1),
                Node::Counted(0, 3, vec![Node::For(2, vec![Node::Stage(2)])]),
                Node::Stage(4),
            ],
        ),
        Node::Stage(5),
        Node::For(4, vec![Node::Stage(6)]),
        Node::Stage(7),
    ];
    assert_eq!(counts(&nodes, &[0])[..8], [1, 2, 12, 0, 2, 1, 4, 1]);
}

#[test]
pub fn c21_scalar_statements_run_once_per_pass_and_once_outside() {
    // The local variable is on the trace: 3 x + 1 once outside and once per pass.
    let nodes = [Node::Bump, Node::For(2, vec![Node::Bump, Node::Stage(1)]), Node::Stage(2)];
    for device in all() {
        let compiled = Compiled::new(&program(&nodes), &device).unwrap();
        let mut world = World::new(&device, 1 << 13, &[0], &[0]);
        assert!(compiled.launch(world.args()).unwrap().is_done());
        let x: Vec<i32> = world.seen().trace.iter().map(|v| v / 64 % 64).collect();
        assert_eq!(x, [13, 40, 40], "{device:?}");
    }
}

#[test]
pub fn c22_other_arrays_and_sizes_do_not_recompile() {
    let folder = tempfile::tempdir().unwrap();
    let (device, counters) = Options::new().threads(1).cache(Cache::at(folder.path())).build().unwrap();
    let compiled =
        Compiled::new(&program(&[crate::stages::region(0, vec![Node::Stage(3)])]), &device).unwrap();
    for capacity in [10, 100, 9000] {
        let mut world = World::new(&device, capacity, &[1, 0], &[0]);
        let at = compiled.launch(world.args()).unwrap().yielded().unwrap();
        let mut other = World::new(&device, 2 * capacity, &[0], &[0]);
        assert!(compiled.resume(&at, other.args()).unwrap().is_done());
    }
    assert_eq!((counters.builds(), counters.cache_hits(), counters.launches()), (1, 0, 6));
}

#[test]
pub fn c23_bounds_may_depend_on_data_written_in_the_same_launch() {
    let mut b = B::new("data_bounds");
    let n = b.0.array("n", Type::I32, 0, Access::Write);
    let x = b.0.array("x", Type::I32, 1, Access::Write);
    let (zero, one) = (b.index(0), b.0.literal(Literal::from(1i32)));
    let three = b.0.literal(Literal::from(3i32));
    b.0.store(n, &[], three);
    let bound = b.0.load(n, &[]);
    let bound = b.0.cast(bound, Type::Index);
    b.0.begin_for("t", zero, bound);
    b.0.update(Combine::Add, n, &[], one);
    let inner = b.0.load(n, &[]);
    let inner = b.0.cast(inner, Type::Index);
    let i = b.0.begin_par(&[("i", zero, inner)])[0];
    b.0.update(Combine::Add, x, &[i], one);
    b.0.end_par();
    b.0.end_loop(None);
    let program = b.0.finish().unwrap();
    for device in all() {
        let compiled = Compiled::new(&program, &device).unwrap();
        let (mut n, mut x) = (device.scalar(0).unwrap(), device.zeros([8]).unwrap());
        let _ = compiled.launch(vec![Arg::Write(n.any_mut()), Arg::Write(x.any_mut())]).unwrap();
        assert_eq!((n.value(), x.to_vec()), (6, vec![3, 3, 3, 3, 2, 1, 0, 0]), "{device:?}");
    }
}

#[test]
pub fn c24_a_loop_that_would_never_end_is_a_build_error() {
    let mut b = B::new("endless");
    b.0.begin_loop();
    b.0.end_loop(None);
    let error = b.0.finish().unwrap_err().to_string();
    assert!(error.contains("a `loop` needs `if … { break; }` as its last statement"), "{error}");
}
