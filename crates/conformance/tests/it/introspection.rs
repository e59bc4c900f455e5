//! Part E of the contract: the cache, and what a test can read.

use std::path::Path;

use ebbtide_autodiff::Request;
use ebbtide_cpu::{Cache, Options};
use ebbtide_ir::Literal;
use ebbtide_runtime::{Arg, Budget, Compiled, CompiledGradient};

use crate::gradients::{burgers, pointwise, wave, with_misfit};
use crate::programs;
use crate::random::generate::with_loss;
use crate::random::gradients::request;
use crate::stages::{Node, World, label, program, region};

fn nodes() -> Vec<Node> {
    vec![Node::Stage(0), Node::For(3, vec![Node::Stage(1), region(0, vec![Node::Stage(2)])]), Node::Stage(4)]
}

/// Builds and hits of a device of its own that compiles the program, yields, and resumes at the label.
fn compile_and_run(folder: &Path) -> (u64, u64) {
    let (device, counters) = Options::new().threads(1).cache(Cache::at(folder)).build().unwrap();
    let compiled = Compiled::new(&program(&nodes()), &device).unwrap();
    let mut world = World::new(&device, 100, &[0, 5, 0], &[0]);
    let at = compiled.launch(world.args()).unwrap().yielded().unwrap();
    assert_eq!((at.label_name(), at.reason()), (&label(0), 5));
    assert!(compiled.resume(&at, world.args()).unwrap().is_done());
    assert_eq!(world.t.as_slice()[..5], [1, 3, 4, 0, 1]);
    (counters.builds(), counters.cache_hits())
}

#[test]
fn c46_a_compiled_program_is_found_again_and_a_damaged_one_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(compile_and_run(folder.path()), (1, 0));
    assert_eq!(compile_and_run(folder.path()), (0, 1));
    let mut damaged = 0;
    let mut work = vec![folder.path().to_path_buf()];
    while let Some(path) = work.pop() {
        for entry in std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                work.push(entry);
            } else {
                let mut bytes = std::fs::read(&entry).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::remove_file(&entry).unwrap();
                std::fs::write(&entry, bytes).unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0);
    assert_eq!(compile_and_run(folder.path()), (1, 0));
    assert_eq!(compile_and_run(folder.path()), (0, 1));
}

#[test]
fn c47_counters_tell_builds_hits_launches_regions_waits_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let (device, counters) = Options::new().threads(1).cache(Cache::at(folder.path())).build().unwrap();
    let compiled = Compiled::new(&program(&nodes()), &device).unwrap();
    let again = Compiled::new(&program(&nodes()), &device).unwrap();
    assert_eq!((counters.builds(), counters.cache_hits(), counters.launches()), (1, 1, 0));
    assert_eq!(counters.regions(), 2, "one region that can yield, compiled twice");
    let mut world = World::new(&device, 100, &[0], &[0]);
    assert!(compiled.launch(world.args()).unwrap().is_done());
    assert!(again.launch(world.args()).unwrap().is_done());
    assert_eq!((counters.launches(), counters.waits(), counters.replays()), (2, 2, 0));
    // A gradient with one state takes it back before each pass but the last, which was recorded on the way.
    let request = Request { of: "loss".into(), wrt: vec!["s".into()], ..Request::default() };
    let budget = Budget::Revolve { slots: 1, block: 1 };
    let g =
        CompiledGradient::new(&with_misfit(programs::pointwise(), "s"), &request, &device, budget).unwrap();
    let mut s = device.array(&[0.1, 0.2]).unwrap();
    let (p, mut loss) = (device.array(&[1.0, 1.0]).unwrap(), device.scalar(0.0).unwrap());
    let mut d = device.zeros::<f64, 1>([2]).unwrap();
    let mut args = [
        Arg::Write(s.any_mut()),
        Arg::Read(p.any()),
        Arg::Scalar(Literal::from(5usize)),
        Arg::Write(loss.any_mut()),
        Arg::Write(d.any_mut()),
    ];
    g.launch(&mut args).unwrap();
    assert_eq!(counters.replays(), 4);
}

#[test]
fn c47_device_passes_apply_to_gradients_with_scheduled_loops() {
    let folder = tempfile::tempdir().unwrap();
    let (device, counters) = Options::new().threads(1).cache(Cache::at(folder.path())).build().unwrap();
    for case in [burgers(9, 4), pointwise(5, 3), wave(8, 7, 3)] {
        let _compiled = case.compile(&device);
    }
    assert_eq!((counters.builds(), counters.unsimplified()), (3, 0));
    // Every random program too: law 1 holds in what is generated.
    for seed in 0..40 {
        let program = with_loss(seed);
        let Ok(request) = request(&program) else { continue };
        let compiled =
            CompiledGradient::new(&program, &request, &ebbtide_runtime::interpreter(), Budget::StoreAll);
        let program = compiled.unwrap().program().clone();
        assert!(ebbtide_ir::passes::simplify_segments(&program, &[&program.body]).is_ok(), "seed {seed}");
    }
}
