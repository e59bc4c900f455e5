//! Sums at shared elements, and sums over iterations that take long, have the same bits for every number of threads: those of
//! the interpreter.

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Counters, Options};
use ebbtide_runtime::interpreter;
use std::sync::Arc;

use crate::devices::folder;

/// Particles to cells of a grid: five cells around each, and a particle that moves on.
#[program]
fn to_grid(
    at: &Array1<i32>,
    x: &mut Array1<f32>,
    mass: &mut Array1<f32>,
    momentum: &mut Array2<f64>,
    steps: usize,
) {
    let cells = mass.len();
    for _t in 0..steps {
        for p in par(0..x.len()) {
            for k in 0..5 {
                let cell = (at[p] as usize + 7 * k) % cells;
                let w = x[p] / (1.0 + k as f32);
                mass[cell] += w;
                momentum[[cell, k % 2]] += (w * 0.3) as f64;
            }
            x[p] = 0.5 * x[p] + 0.1;
        }
    }
}

/// Rows of any length, whose entries go to columns: a transposed product.
#[program]
fn by_columns(
    first: &Array1<i32>,
    column: &Array1<i32>,
    value: &Array1<f64>,
    x: &Array1<f64>,
    y: &mut Array1<f64>,
) {
    for i in par(0..x.len()) {
        for k in first[i] as usize..first[i + 1] as usize {
            y[column[k] as usize] += value[k] * x[i];
        }
    }
}

/// Rows of which all iterations share the elements, each in a column by itself.
#[program]
fn shared_rows(x: &Array2<f64>, w: &mut Array2<f64>) {
    for i in par(0..x.dim(1)) {
        for t in 0..x.dim(0) {
            w[[t, 0]] += x[[t, i]];
            w[[t, 2]] += x[[t, i]].powi(2);
            w[[t, 2]] += 0.1;
            w[[t, 1]] += 1.0 / (3.0 + x[[t, i]]);
        }
    }
}

/// Extremes and counts, in a loop of two ranges, where not every iteration has a term.
#[program]
fn extremes(
    at: &Array2<i32>,
    x: &Array2<f32>,
    least: &mut Array1<f32>,
    most: &mut Array1<f32>,
    count: &mut Array1<i32>,
) {
    for (i, j) in par(0..at.dim(0), 0..at.dim(1)) {
        let k = at[[i, j]] as usize;
        if x[[i, j]] > 0.25 {
            least[k].min_assign(x[[i, j]]);
            count[k] += 1;
        } else {
            most[k].max_assign(x[[i, j]]);
        }
    }
}

/// Adds as often as it is told.
#[program]
fn very_often(at: &Array1<i32>, times: usize, y: &mut Array1<f64>) {
    for i in par(0..at.len()) {
        for _k in 0..times {
            y[at[i] as usize] += 1.0;
        }
    }
}

/// Sums and an extreme over iterations that take long, some of which have no term.
#[program]
fn long_iterations(
    x: &Array2<f32>,
    rounds: usize,
    loss: &mut Array0<f32>,
    most: &mut Array0<f32>,
    count: &mut Array0<i32>,
) {
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        let mut sum = 0.0;
        for k in 0..rounds {
            sum += (x[[i, j]] * k as f32).sin() - 0.125 * (x[[i, j]] - k as f32);
        }
        loss[[]] += sum;
        if sum > 0.4 {
            most[[]].max_assign(sum);
            count[[]] += 1;
        }
    }
}

/// The same in doubles, one long row; a division by zero ends it.
#[program]
fn long_row(x: &Array1<f64>, by: &Array1<i32>, rounds: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut sum = 0.0;
        for k in 0..rounds {
            sum += (x[i] * k as f64).cos() - 0.125 * x[i];
        }
        loss[[]] += sum * (6 / by[i]) as f64;
    }
}

/// Divides by what may be zero in the middle of an iteration.
#[program]
fn divided(at: &Array1<i32>, by: &Array1<i32>, y: &mut Array1<i32>) {
    for i in par(0..at.len()) {
        for _k in 0..8 {
            y[at[i] as usize] += 1000 / by[i];
        }
    }
}

fn device(threads: usize) -> (Device, Arc<Counters>) {
    Options::new().threads(threads).cache(Cache::at(folder())).build().unwrap()
}

/// The interpreter, and the CPU with so many threads.
fn devices() -> impl Iterator<Item = Device> {
    [interpreter()].into_iter().chain([1, 2, 3, 8].map(|threads| device(threads).0))
}

/// Numbers below `bound` that look random.
fn numbers(seed: u64, count: usize, bound: usize) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    (0..count).map(|_| next()).collect()
}

/// Asserts that all devices leave the same bits.
fn same_bits(run: impl Fn(&Device) -> ebbtide::Result<Vec<Vec<u64>>>) {
    let mut expected = None;
    for device in devices() {
        let found = run(&device).unwrap();
        let expected = expected.get_or_insert_with(|| found.clone());
        assert!(*expected == found, "{device:?}");
    }
}

fn single(array: &Array1<f32>) -> Vec<u64> {
    array.to_vec().into_iter().map(|x| x.to_bits().into()).collect()
}

fn double(numbers: Vec<f64>) -> Vec<u64> {
    numbers.into_iter().map(f64::to_bits).collect()
}

#[test]
fn particles_to_a_grid_have_the_bits_of_the_interpreter() {
    // Many particles to few cells, to one, and to many.
    for (particles, cells) in [(9_001, 83), (4_000, 1), (30_000, 20_011)] {
        let at = numbers(1, particles, cells);
        let x = numbers(2, particles, 1000);
        same_bits(|device| {
            let at = device.from_fn([particles], |[p]| at[p] as i32)?;
            let mut x = device.from_fn([particles], |[p]| x[p] as f32 / 997.0)?;
            let (mut mass, mut momentum) = (device.zeros([cells])?, device.zeros([cells, 2])?);
            to_grid().compile(device)?.launch((&at, &mut x, &mut mass, &mut momentum, 3))?;
            Ok(vec![single(&x), single(&mass), double(momentum.to_vec())])
        });
    }
}

#[test]
fn rows_longer_than_the_room_for_notes_keep_their_order() {
    // Short rows, rows of which each fills the room of a thread, and some that are empty.
    let rows = 700;
    let lengths: Vec<usize> = numbers(3, rows, 40)
        .into_iter()
        .enumerate()
        .map(|(i, n)| if i % 97 == 41 { 70_000 } else { n / 2 })
        .collect();
    let mut first = vec![0];
    lengths.iter().for_each(|n| first.push(first[first.len() - 1] + n));
    let all = first[rows];
    let columns = numbers(4, all, 501);
    let values = numbers(5, all, 1 << 20);
    same_bits(|device| {
        let first = device.from_fn([rows + 1], |[i]| first[i] as i32)?;
        let column = device.from_fn([all], |[k]| columns[k] as i32)?;
        let value = device.from_fn([all], |[k]| values[k] as f64 / 1e5 - 3.0)?;
        let x = device.from_fn([rows], |[i]| 1.0 + 1.0 / (i as f64 + 1.0))?;
        let mut y = device.from_fn([501], |[k]| k as f64)?;
        by_columns().compile(device)?.launch((&first, &column, &value, &x, &mut y))?;
        Ok(vec![double(y.to_vec())])
    });
}

#[test]
fn elements_that_lanes_share_have_the_bits_of_the_interpreter() {
    for shape in [[3, 5], [4, 64], [2, 1_003]] {
        let x = numbers(10, shape[0] * shape[1], 1 << 16);
        same_bits(|device| {
            let x = device.from_fn(shape, |[t, i]| x[t * shape[1] + i] as f64 / 65536.0 - 0.5)?;
            let mut w = device.from_fn([shape[0], 3], |[t, k]| (t + k) as f64)?;
            shared_rows().compile(device)?.launch((&x, &mut w))?;
            Ok(vec![double(w.to_vec())])
        });
    }
}

#[test]
fn extremes_and_counts_have_the_bits_of_the_interpreter() {
    for shape in [[3, 20_000], [20_000, 3], [211, 207]] {
        let at = numbers(6, shape[0] * shape[1], 1_003);
        let x = numbers(7, shape[0] * shape[1], 1 << 16);
        same_bits(|device| {
            let at = device.from_fn(shape, |[i, j]| at[i * shape[1] + j] as i32)?;
            let x = device.from_fn(shape, |[i, j]| x[i * shape[1] + j] as f32 / 65536.0 - 0.25)?;
            let mut least = device.from_fn([1_003], |[k]| k as f32 / 1003.0)?;
            let (mut most, mut count) = (device.zeros([1_003])?, device.zeros::<i32, 1>([1_003])?);
            extremes().compile(device)?.launch((&at, &x, &mut least, &mut most, &mut count))?;
            let count = count.to_vec().into_iter().map(|n| n as u64).collect();
            Ok(vec![single(&least), single(&most), count])
        });
    }
}

#[test]
fn sums_over_long_iterations_have_the_bits_of_the_interpreter() {
    // One leaf, several windows, rows that are shorter than lanes, and longer than a leaf.
    for shape in [[1, 900], [1, 40_003], [9_001, 3], [5, 5_003], [301, 101]] {
        let x = numbers(8, shape[0] * shape[1], 1 << 16);
        same_bits(|device| {
            let x = device.from_fn(shape, |[i, j]| x[i * shape[1] + j] as f32 / 65536.0 - 0.5)?;
            let (mut loss, mut most) = (device.from_fn([], |_| 0.3)?, device.from_fn([], |_| -1.0)?);
            let mut count = device.zeros::<i32, 0>([])?;
            long_iterations().compile(device)?.launch((&x, 7, &mut loss, &mut most, &mut count))?;
            let single = |x: &Array0<f32>| u64::from(x.value().to_bits());
            Ok(vec![vec![single(&loss), single(&most), count.value() as u64]])
        });
    }
    let x = numbers(9, 70_001, 1 << 16);
    same_bits(|device| {
        let x = device.from_fn([70_001], |[i]| x[i] as f64 / 65536.0 - 0.5)?;
        let by = device.from_fn([70_001], |[i]| 1 + (i % 3) as i32)?;
        let mut loss = device.zeros([])?;
        long_row().compile(device)?.launch((&x, &by, 7, &mut loss))?;
        Ok(vec![vec![loss.value().to_bits()]])
    });
}

#[test]
fn a_fault_ends_a_sum_over_long_iterations() {
    let n = 40_000;
    for zero in [0, 17_000, n - 1] {
        for device in devices() {
            let x = device.from_fn([n], |[i]| i as f64).unwrap();
            let by = device.from_fn([n], |[i]| i32::from(i != zero)).unwrap();
            let mut loss = device.zeros([]).unwrap();
            let compiled = long_row().compile(&device).unwrap();
            let error = compiled.launch((&x, &by, 7, &mut loss)).unwrap_err().to_string();
            assert!(error.contains("zero"), "{device:?}: {error}");
            let by = device.from_fn([n], |_| 1).unwrap();
            compiled.launch((&x, &by, 7, &mut loss)).unwrap();
        }
    }
}

#[test]
fn a_fault_ends_the_loop_of_every_thread() {
    let n = 20_000;
    for (bad, zero) in [(Some(17), None), (Some(n - 1), None), (None, Some(n / 2)), (None, Some(0))] {
        for device in devices() {
            let at = device.from_fn([n], |[i]| if Some(i) == bad { 77 } else { (i % 50) as i32 }).unwrap();
            let by = device.from_fn([n], |[i]| if Some(i) == zero { 0 } else { 1 + (i % 3) as i32 }).unwrap();
            let mut y = device.zeros([50]).unwrap();
            let compiled = divided().compile(&device).unwrap();
            let error = compiled.launch((&at, &by, &mut y)).unwrap_err().to_string();
            let says = if bad.is_some() { "77" } else { "zero" };
            assert!(error.contains(says), "{device:?}: {error}");
            // The next launch begins anew.
            let at = device.from_fn([n], |[i]| (i % 50) as i32).unwrap();
            let by = device.from_fn([n], |_| 1).unwrap();
            let mut y = device.zeros([50]).unwrap();
            compiled.launch((&at, &by, &mut y)).unwrap();
            assert_eq!(y.to_vec(), vec![(n / 50 * 8 * 1000) as i32; 50]);
        }
    }
}

#[test]
fn a_loop_whose_iterations_never_end_is_stopped() {
    for threads in [1, 2, 3, 8] {
        let (device, _) = device(threads);
        let cancel = Cancel::new();
        let compiled = very_often().compile(&device).unwrap().cancel_with(&cancel);
        let at = device.from_fn([500], |[i]| (i % 30) as i32).unwrap();
        let mut y = device.zeros([30]).unwrap();
        let switch = cancel.clone();
        // Before the launch, at its beginning or in its middle: it is stopped.
        let later = std::thread::spawn(move || {
            (0..1000).for_each(|_| std::thread::yield_now());
            switch.cancel();
        });
        let stopped = compiled.launch((&at, 1 << 40, &mut y)).unwrap_err();
        assert!(stopped.to_string().contains("cancelled"), "{stopped}");
        later.join().unwrap();
        cancel.reset();
        let mut y = device.zeros([30]).unwrap();
        compiled.launch((&at, 300, &mut y)).unwrap();
        assert_eq!(y.to_vec().iter().sum::<f64>(), 150_000.0);
    }
}

#[test]
fn a_plan_counts_the_room_for_notes() {
    let fixed = |threads: usize, n: usize| {
        let (device, _) = device(threads);
        let first = device.zeros([n + 1]).unwrap();
        let (column, value) = (device.zeros([n]).unwrap(), device.zeros([n]).unwrap());
        let (x, mut y) = (device.zeros([n]).unwrap(), device.zeros([n]).unwrap());
        let gradient = by_columns().vjp(by_columns::y).wrt(by_columns::x).compile(&device).unwrap();
        gradient.plan((&first, &column, &value, &x, &mut y)).unwrap().fixed_bytes
    };
    assert_eq!(fixed(1, 100), fixed(4, 100), "one thread runs a short loop");
    assert!(fixed(4, 100_000) > fixed(1, 100_000));
}
