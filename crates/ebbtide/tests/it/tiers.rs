//! States beyond memory: wherever they are kept, not one bit changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide::{Rate, Rates, Tiers};

use crate::durable::{Fragile, Then};

/// A nonlinear wave whose states are two arrays, and whose tape is one.
#[program]
fn wave(u: &mut Array2<f64>, v: &mut Array2<f64>, c: &Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.dim(0);
    let m = u.dim(1);
    for _t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let lap = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * u[[i, j]];
            v[[i, j]] = 2.0 * u[[i, j]] - v[[i, j]] + c[[i, j]] * lap - 1e-3 * u[[i, j]] * u[[i, j]];
        }
        swap(u, v);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

const SIDE: usize = 64;
const STATE: u64 = (2 * SIDE * SIDE * 8) as u64;

struct Arrays {
    u: Array2<f64>,
    v: Array2<f64>,
    c: Array2<f64>,
    loss: Array0<f64>,
}

fn arrays(device: &Device) -> Arrays {
    let start: Vec<f64> = (0..SIDE * SIDE).map(|k| ((k % 97) as f64 * 0.1).sin()).collect();
    Arrays {
        u: device.array_with_shape([SIDE, SIDE], &start).unwrap(),
        v: device.zeros([SIDE, SIDE]).unwrap(),
        c: device.array_with_shape([SIDE, SIDE], &vec![0.1; SIDE * SIDE]).unwrap(),
        loss: device.scalar(0.0).unwrap(),
    }
}

fn compile(device: &Device) -> CompiledGrad<wave> {
    wave().grad(wave::loss).wrt(wave::u).wrt(wave::c).compile(device).unwrap()
}

fn bits(out: &Gradients) -> Vec<u64> {
    let [du, dc] = [out.get(wave::u).unwrap(), out.get(wave::c).unwrap()];
    du.as_slice().iter().chain(dc.as_slice()).map(|x| x.to_bits()).collect()
}

/// A disk as fast as this: then the plan does not depend on the machine.
fn rates(disk: f64) -> Rates {
    let rate = |bandwidth| Rate { latency: 1e-7, bandwidth };
    Rates { memory: rate(1e10), host: rate(2e9), disk_write: rate(disk), disk_read: rate(disk) }
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn the_gradient_has_the_same_bits_wherever_states_are_kept() {
    let device = Device::cpu();
    let dir = crate::folder::folder();
    let g = compile(&device);
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let steps = 200;
    let all = g.launch((&mut u, &mut v, &c, steps, &mut loss)).unwrap();
    let fixed = g.plan((&mut u, &mut v, &c, steps, &mut loss)).unwrap().fixed_bytes;
    let mut used = 0;
    for states in [3, 4, 6, 10, 20] {
        let budget = Bytes(fixed + states * (STATE + 16 * 1024));
        let alone = g.with_memory(budget);
        let recomputed = alone.plan((&mut u, &mut v, &c, steps, &mut loss)).unwrap().recompute_factor();
        assert_eq!(bits(&alone.launch((&mut u, &mut v, &c, steps, &mut loss)).unwrap()), bits(&all));
        for on_disk in [1, 5, 40, 1000] {
            let tiers = Tiers::new().disk(dir.path(), on_disk * STATE).rates(rates(1e12));
            let g = alone.with_tiers(tiers);
            let plan = g.plan((&mut u, &mut v, &c, steps, &mut loss)).unwrap();
            assert!(plan.recompute_factor() <= recomputed, "{}", plan.explain());
            assert!(
                plan.peak_bytes() <= budget.0 && plan.disk_bytes() <= on_disk * STATE,
                "{}",
                plan.explain()
            );
            let out = g.launch((&mut u, &mut v, &c, steps, &mut loss)).unwrap();
            assert_eq!(bits(&out), bits(&all), "{}", plan.explain());
            let ran = out.ran();
            assert_eq!((ran.to_disk, ran.from_disk), (plan.disk_bytes(), plan.disk_bytes()));
            used += plan.loops[0].away.disk_slots;
            assert!(is_empty(dir.path()), "slot files are gone after the launch");
        }
    }
    assert!(used > 50, "states were on disk: {used}");
}

#[test]
fn a_disk_slower_than_computing_is_left_alone_and_a_fast_one_saves_passes() {
    let device = Device::cpu();
    let dir = crate::folder::folder();
    let g = compile(&device);
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let fixed = g.plan((&mut u, &mut v, &c, 500, &mut loss)).unwrap().fixed_bytes;
    let g = g.with_memory(Bytes(fixed + 8 * (STATE + 16 * 1024)));
    let mut planned = |disk: Option<f64>| {
        let tiers =
            disk.map_or(Tiers::new(), |disk| Tiers::new().disk(dir.path(), 1 << 30).rates(rates(disk)));
        let plan = g.with_tiers(tiers).plan((&mut u, &mut v, &c, 500, &mut loss)).unwrap();
        (plan.loops[0].totals.executions(), plan.loops[0].away.disk_slots, plan.explain())
    };
    let (alone, ..) = planned(None);
    let (slow, on_slow, _) = planned(Some(1e3));
    let (fast, on_fast, explained) = planned(Some(1e13));
    assert_eq!((slow, on_slow), (alone, 0));
    assert!(fast < alone && on_fast > 10, "{explained}");
    assert!(explained.contains("states on disk") && explained.contains("disk  "), "{explained}");
}

#[test]
fn host_memory_of_a_device_in_host_memory_belongs_to_its_budget() {
    let device = Device::cpu();
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let g = compile(&device);
    let apart = g.with_memory(Bytes::kib(500)).with_tiers(Tiers::new().host_memory(500 << 10));
    let one = g.with_memory(Bytes::kib(1000));
    let [apart, one] = [apart, one].map(|g| g.plan((&mut u, &mut v, &c, 300, &mut loss)).unwrap());
    assert_eq!((apart.peak_bytes(), apart.budget, apart.host_bytes()), (one.peak_bytes(), one.budget, 0));
}

#[test]
fn what_extends_memory_needs_a_budget_of_memory() {
    let device = Device::cpu();
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let g = compile(&device).with_budget(Budget::Revolve { slots: 3, block: 1 });
    let g = g.with_tiers(Tiers::new().disk(std::env::temp_dir(), 1 << 20));
    let error = g.launch((&mut u, &mut v, &c, 30, &mut loss)).unwrap_err();
    assert!(error.to_string().contains("extend `.memory(..)`"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let device = Device::cpu();
    let dir = crate::folder::folder();
    let file = dir.path().join("file");
    std::fs::write(&file, b"not a directory").unwrap();
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let g =
        wave().grad(wave::loss).wrt(wave::u).memory(Bytes::kib(700)).disk(file.join("below"), Bytes::mib(64));
    let g = g.compile(&device).unwrap();
    let error = g.launch((&mut u, &mut v, &c, 300, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("file/below") && error.contains("`.disk(..)`"), "{error}");
}

#[test]
fn a_budget_below_the_minimum_names_the_minimum_with_a_disk_too() {
    let device = Device::cpu();
    let dir = crate::folder::folder();
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let tiers = || Tiers::new().disk(dir.path(), 1 << 30).rates(rates(1e12));
    let g = compile(&device).with_tiers(tiers());
    let error = g.with_memory(Bytes(10)).plan((&mut u, &mut v, &c, 300, &mut loss)).unwrap_err().to_string();
    let minimum: u64 =
        error.split("works here is ").nth(1).unwrap().split(['(', ' ']).nth(3).unwrap().parse().unwrap();
    let expected = g.launch((&mut u, &mut v, &c, 30, &mut loss)).unwrap();
    let least = g.with_memory(Bytes(minimum)).launch((&mut u, &mut v, &c, 30, &mut loss)).unwrap();
    assert_eq!(bits(&least), bits(&expected));
    assert!(g.with_memory(Bytes(minimum - 1)).launch((&mut u, &mut v, &c, 300, &mut loss)).is_err());
}

#[test]
fn a_durable_run_that_broke_down_goes_on_with_its_states_on_disk() {
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let device =
        Device::new(Arc::new(Fragile { device: Device::cpu(), left: left.clone(), then: Then::Fail }));
    let slots = crate::folder::folder();
    let Arrays { mut u, mut v, c, mut loss } = arrays(&device);
    let (g, steps) = (compile(&device), 90);
    let all = g.launch((&mut u, &mut v, &c, steps, &mut loss)).unwrap();
    let fixed = g.plan((&mut u, &mut v, &c, steps, &mut loss)).unwrap().fixed_bytes;
    let g = g.with_memory(Bytes(fixed + 4 * (STATE + 16 * 1024)));
    let g = g.with_tiers(Tiers::new().disk(slots.path(), 1 << 30).rates(rates(1e12)));
    left.store(1 << 40, Ordering::Relaxed);
    let plain = g.launch((&mut u, &mut v, &c, steps, &mut loss)).unwrap();
    let segments = (1 << 40) - left.load(Ordering::Relaxed);
    assert!(plain.ran().to_disk > 0);
    for until in [segments / 4, 3 * segments / 4] {
        let dir = crate::folder::folder();
        let mut launch = |segments: i64| {
            left.store(segments, Ordering::Relaxed);
            let args = (&mut u, &mut v, &c, steps, &mut loss);
            g.launch_durable_every(dir.path().join("run"), Duration::ZERO, g.shared(args))
        };
        assert!(launch(until).is_err());
        assert!(is_empty(slots.path()), "an error leaves no slot files");
        let out = launch(1 << 40).unwrap();
        assert_eq!(bits(&out), bits(&all), "broken down after {until} of {segments} segments");
        assert!((1 << 40) - left.load(Ordering::Relaxed) <= segments - until + segments / 5);
        assert!(is_empty(slots.path()));
    }
}

#[test]
fn sibling_loops_and_loops_in_loops_share_what_is_beyond_memory() {
    use crate::durable::simulation;
    let device = Device::cpu();
    let dir = crate::folder::folder();
    let mut u = device.array(&(0..4000).map(|i| 0.3 + 0.0001 * i as f64).collect::<Vec<_>>()).unwrap();
    let mut c = device.zeros([4000]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = simulation().grad(simulation::loss).wrt(simulation::u).compile(&device).unwrap();
    let mut launch = |g: &CompiledGrad<simulation>| {
        let out = g.launch((&mut u, &mut c, 40, 3, &mut loss)).unwrap();
        let plan = g.plan((&mut u, &mut c, 40, 3, &mut loss)).unwrap();
        let bits: Vec<u64> = out.get(simulation::u).unwrap().to_vec().iter().map(|x| x.to_bits()).collect();
        (bits, plan, out.ran())
    };
    let (expected, all, _) = launch(&g);
    let mut both = 0;
    for kib in [700, 1000, 1500] {
        let g = g.with_memory(Bytes(all.fixed_bytes + (kib << 10)));
        for disk in [10, 100] {
            let room = disk * 64_000;
            let g = g.with_tiers(Tiers::new().disk(dir.path(), room).rates(rates(1e12)));
            let (bits, plan, ran) = launch(&g);
            assert!(bits == expected, "{}", plan.explain());
            assert!(plan.disk_bytes() <= room, "{}", plan.explain());
            assert_eq!((ran.to_disk, ran.from_disk), (plan.disk_bytes(), plan.disk_bytes()));
            both += u64::from(plan.loops.iter().filter(|l| l.away.disk_slots > 0).count() > 1);
        }
    }
    assert!(both > 0, "no plan has states of both loops on disk");
}
