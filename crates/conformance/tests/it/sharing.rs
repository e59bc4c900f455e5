//! Several threads share a launch where some loop of it is worth that, whatever the sizes of its arrays.

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Counters, Options};
use std::sync::Arc;

use crate::devices::folder;

/// Forces between all pairs: few elements, much work.
#[program]
fn pairs(x: &Array1<f32>, y: &Array1<f32>, fx: &mut Array1<f32>) {
    let n = x.len();
    for i in par(0..n) {
        let mut sum = 0.0;
        for j in 0..n {
            let dx = x[j] - x[i];
            let dy = y[j] - y[i];
            let d = dx * dx + dy * dy + 0.01;
            sum += dx / (d * d.sqrt());
        }
        fx[i] = sum;
    }
}

/// Little work in a row of a large array.
#[program]
fn row(a: &mut Array2<f64>, steps: usize) {
    for t in 0..steps {
        for i in par(0..14) {
            a[[t, i]] += 1.0;
        }
    }
}

/// An inner loop whose end is the outer variable.
#[program]
fn triangle(a: &Array2<f64>, x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut sum = 0.0;
        for j in 0..i {
            sum += a[[i, j]];
        }
        x[i] = sum;
    }
}

#[program]
fn product(a: &Array2<f32>, b: &Array2<f32>, c: &mut Array2<f32>) {
    matmul(a, b, c);
}

#[program]
fn decay(s: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 0.1 * s[i].tanh();
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i] * s[i];
    }
}

fn device(threads: usize) -> (Device, Arc<Counters>) {
    Options::new().threads(threads).cache(Cache::at(folder())).build().unwrap()
}

/// How many of the pieces that `launch` runs are shared by several threads.
fn shared(launch: impl Fn(&Device) -> ebbtide::Result<()>) -> u64 {
    let (device, counters) = device(3);
    launch(&device).unwrap();
    counters.shared()
}

#[test]
fn work_decides_how_many_threads_run_a_launch_not_the_size_of_arrays() {
    let all_pairs = |n: usize| {
        shared(|device| {
            let (x, y) = (device.from_fn([n], |[i]| i as f32)?, device.from_fn([n], |[i]| (i % 7) as f32)?);
            let mut fx = device.zeros([n])?;
            pairs().compile(device)?.launch((&x, &y, &mut fx)).map(drop)
        })
    };
    assert_eq!(all_pairs(1024), 1, "4 KiB each, but a million terms");
    assert_eq!(all_pairs(16), 0);
    let rows = |columns: usize| {
        shared(|device| {
            let mut a = device.zeros([4, columns])?;
            row().compile(device)?.launch((&mut a, 4)).map(drop)
        })
    };
    assert_eq!(rows(100_000), 0, "3 MiB, but fourteen additions");
    let triangles = |n: usize| {
        shared(|device| {
            let (a, mut x) = (device.zeros([n, n])?, device.zeros([n])?);
            triangle().compile(device)?.launch((&a, &mut x)).map(drop)
        })
    };
    assert_eq!((triangles(300), triangles(30)), (1, 0));
    let products = |n: usize| {
        shared(|device| {
            let (a, b, mut c) = (device.zeros([n, n])?, device.zeros([n, n])?, device.zeros([n, n])?);
            product().compile(device)?.launch((&a, &b, &mut c)).map(drop)
        })
    };
    assert_eq!((products(60), products(12)), (1, 0));
}

#[test]
fn one_thread_shares_nothing() {
    let (device, counters) = device(1);
    let (a, mut x) = (device.zeros([500, 500]).unwrap(), device.zeros([500]).unwrap());
    triangle().compile(&device).unwrap().launch((&a, &mut x)).unwrap();
    assert_eq!(counters.shared(), 0);
}

/// Threads of a busy machine wait for each other asleep: eight of them on whatever cores there are, a barrier in each step.
#[test]
fn more_threads_than_cores_give_the_same_bits() {
    let run = |threads: usize| {
        let (device, counters) = device(threads);
        let mut s = device.from_fn([5000], |[i]| 1.0 + i as f64).unwrap();
        let mut loss = device.zeros([]).unwrap();
        decay().compile(&device).unwrap().launch((&mut s, 50, &mut loss)).unwrap();
        (s.to_vec(), loss.value(), counters.shared())
    };
    let (one, several) = (run(1), run(8));
    assert_eq!((one.0, one.1), (several.0, several.1));
    assert_eq!((one.2, several.2), (0, 1));
}

/// A sum over a hundred elements has one leaf: its partial sums take a few bytes of a plan, not those of the most leaves.
#[test]
fn partial_sums_of_a_plan_are_those_of_its_loops() {
    let (device, _) = device(1);
    let fixed = |n: usize| {
        let mut s = device.zeros([n]).unwrap();
        let mut loss = device.zeros([]).unwrap();
        let gradient = decay().grad(decay::loss).wrt(decay::s).compile(&device).unwrap();
        let plan = gradient.plan((&mut s, 10, &mut loss)).unwrap();
        plan.fixed_bytes
    };
    let element = size_of::<f64>() as u64;
    // Beside them a few arrays of the same length, and single numbers.
    assert!(fixed(100) < 6 * 100 * element, "{}", fixed(100));
    // The iteration after those of a leaf begins another one.
    let leaf = ebbtide::ir::leaf::LEAST as usize;
    let [before, full, more] = [leaf - 1, leaf, leaf + 1].map(fixed);
    assert_eq!((more - full) - (full - before), element);
}
