//! Loops that end when their data say so, and whose tapes are part of that of the loop around them, or of the program.

use ebbtide::prelude::*;
use ebbtide::{Budget, Bytes};

/// Elements grow, each in turn as its data say, until one of them is large.
#[program]
fn growth(x: &mut Array1<f64>, first: &Array1<i32>, limit: f64, loss: &mut Array0<f64>) {
    let n = x.len();
    for e in 0..first.len() {
        let mut u = first[e] as usize;
        while x[u] < limit {
            x[u] += 0.01 * (1.5 + (x[u] + x[(u + 1) % n]).sin());
            u = (u * 3 + 1) % n;
        }
        x[u] *= 0.3;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

fn bits(a: &Array1<f64>) -> Vec<u64> {
    a.as_slice().iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_loop_with_more_iterations_than_were_expected_is_begun_again_with_more_room() {
    begun_again(&crate::cpu());
    begun_again(&Device::interpreter());
}

#[test]
#[ignore = "needs CUDA"]
fn a_loop_with_more_iterations_than_were_expected_is_begun_again_on_cuda() {
    begun_again(&Device::cuda().unwrap());
}

fn begun_again(device: &Device) {
    let start: Vec<f64> = (0..5).map(|i| 0.1 * f64::from(i)).collect();
    let (mut x, first) = (device.array(&start).unwrap(), device.array(&[0, 3, 1, 4]).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    let g = growth().grad(growth::loss).wrt(growth::x).compile(device).unwrap();
    let mut run = |g: &CompiledGrad<growth>, limit: f64| {
        let out = g.launch((&mut x, &first, limit, &mut loss)).unwrap();
        bits(out.get(growth::x).unwrap())
    };
    let bytes = |g: &CompiledGrad<growth>| {
        let (mut x, mut loss) = (device.array(&start).unwrap(), device.scalar(0.0).unwrap());
        g.plan((&mut x, &first, 1.0, &mut loss)).unwrap().store_all_bytes
    };
    let expected = bytes(&g);
    let few = run(&g, 1.0);
    assert_eq!(bytes(&g), expected, "there was room");
    let many = run(&g, 40.0);
    let learnt = bytes(&g);
    assert!(learnt > expected, "{learnt} {expected}");
    assert_eq!(run(&g, 40.0), many);
    assert_eq!(bytes(&g), learnt, "what was learnt serves later launches");
    assert_eq!(run(&g, 1.0), few);
    // Where schedules are chosen by hand, and where there is no memory for the tape, the loop runs again instead.
    assert_eq!(run(&g.with_budget(Budget::Revolve { slots: 64, block: 16 }), 40.0), many);
    assert_eq!(run(&g.with_memory(Bytes::kib(40)), 40.0), many);
    let dir = crate::folder::folder();
    let out = g.launch_durable(dir.path().join("run"), (&mut x, &first, 40.0, &mut loss)).unwrap();
    assert_eq!(bits(out.get(growth::x).unwrap()), many);
}

/// Elements are linked with one another; paths become shorter as they are followed.
#[program]
fn groups(
    a: &Array1<i32>,
    b: &Array1<i32>,
    w: &Array1<f64>,
    mass: &mut Array1<f64>,
    parent: &mut Array1<i32>,
    loss: &mut Array0<f64>,
) {
    for i in par(0..parent.len()) {
        parent[i] = i as i32;
    }
    for e in 0..a.len() {
        let mut u = a[e] as usize;
        while parent[u] as usize != u {
            parent[u] = parent[parent[u] as usize];
            u = parent[u] as usize;
        }
        let mut v = b[e] as usize;
        while parent[v] as usize != v {
            v = parent[v] as usize;
        }
        if u != v {
            parent[v] = u as i32;
            mass[u] += mass[v] * w[e];
            loss[[]] += w[e] * mass[u];
        }
    }
}

#[test]
fn the_tape_of_a_loop_of_unknown_length_grows_with_its_iterations_and_not_with_its_arrays() {
    let device = crate::cpu();
    let g = groups().grad(groups::loss).wrt(groups::w).wrt(groups::mass).compile(&device).unwrap();
    let bytes = |n: i32| {
        let [a, b] = [0, 1].map(|k| device.array(&(0..n).map(|e| (e + k) % n).collect::<Vec<_>>()).unwrap());
        let (w, mut mass) = (device.zeros([n as usize]).unwrap(), device.zeros([n as usize]).unwrap());
        let (mut parent, mut loss) = (device.zeros([n as usize]).unwrap(), device.scalar(0.0).unwrap());
        g.plan((&a, &b, &w, &mut mass, &mut parent, &mut loss)).unwrap().store_all_bytes
    };
    let (once, twice) = (bytes(10_000), bytes(20_000));
    assert!(twice < 3 * once && once < 10_000 * 1000, "{once} {twice}");
}

/// Halves are added to halves: how long the next loop is only the run knows.
#[program]
fn tree(x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        let mut m = x.len() / 2;
        while m > 0 {
            for j in par(0..m) {
                x[j] += 0.01 * x[j] * x[j + m];
            }
            m = m / 2;
        }
        x[1] = x[0].sin();
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn a_parallel_loop_of_unknown_length_records_what_it_overwrites_and_no_more() {
    strips(&crate::cpu());
    strips(&Device::interpreter());
}

#[test]
#[ignore = "needs CUDA"]
fn a_parallel_loop_of_unknown_length_records_what_it_overwrites_and_no_more_on_cuda() {
    strips(&Device::cuda().unwrap());
}

fn strips(device: &Device) {
    let (n, steps) = (512u32, 6usize);
    let start: Vec<f64> = (0..n).map(|i| (f64::from(i) * 0.7).sin() + 1.1).collect();
    let g = tree().grad(tree::loss).wrt(tree::x).compile(device).unwrap();
    let run = |g: &CompiledGrad<tree>| {
        let (mut x, mut loss) = (device.array(&start).unwrap(), device.scalar(0.0).unwrap());
        let out = g.launch((&mut x, steps, &mut loss)).unwrap();
        bits(out.get(tree::x).unwrap())
    };
    let kept = run(&g);
    // What was recorded: `n` elements in each step, with room for twice as many, beside a few arrays.
    let (mut x, mut loss) = (device.array(&start).unwrap(), device.scalar(0.0).unwrap());
    let bytes = g.plan((&mut x, steps, &mut loss)).unwrap().store_all_bytes;
    let elements = (2 * u64::from(n) * steps as u64 + 8 * u64::from(n)) * 8;
    assert!(bytes < elements + (64 << 10), "{bytes} for {elements}");
    assert_eq!(run(&g), kept);
    assert_eq!(run(&g.with_budget(Budget::Revolve { slots: 2, block: 1 })), kept);
    assert_eq!(run(&g.with_budget(Budget::Periodic { period: 2 })), kept);
    assert_eq!(run(&g.with_memory(Bytes::kib(48))), kept);
    let dir = crate::folder::folder();
    let out = g.launch_durable(dir.path().join("run"), (&mut x, steps, &mut loss)).unwrap();
    assert_eq!(bits(out.get(tree::x).unwrap()), kept);
}
