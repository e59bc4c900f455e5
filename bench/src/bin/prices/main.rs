//! What gradients cost: time of the gradient over time of the program, and the memory that it holds, for programs that
//! overwrite parts of arrays, factor matrices, and sum within sums. One thread, every tape kept, launches alone.
//!
//! `cargo run -p ebbtide-bench --bin prices -- [NAME]`

use std::time::Instant;

use ebbtide::prelude::*;

mod nests;
mod rows;

use nests::*;
use rows::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Processor time of this thread in microseconds: other work on the machine does not count. Where the system does not tell,
/// the time on the wall.
fn now(begun: Instant) -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map_or(begun.elapsed().as_secs_f64() * 1e6, |ns| ns as f64 / 1e3)
}

/// What a run takes in the mean, in microseconds. The system counts in steps of milliseconds: so many runs are taken together.
fn mean(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let wall = Instant::now();
    let begun = now(wall);
    let mut runs = 0.0;
    loop {
        work()?;
        runs += 1.0;
        let taken = now(wall) - begun;
        if taken > 1e5 {
            return Ok(taken / runs);
        }
    }
}

/// A number in 0..1 that depends on `k` alone.
fn number(k: usize) -> f64 {
    let mixed = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(number).collect()
}

/// A symmetric matrix with a heavy diagonal.
fn heavy(device: &Device, n: usize) -> Result<Array2<f64>> {
    let element = |k: usize| {
        let (i, j) = (k / n, k % n);
        if i == j { n as f64 } else { number(i.min(j) * n + i.max(j)) }
    };
    Ok(device.array_with_shape([n, n], &(0..n * n).map(element).collect::<Vec<f64>>())?)
}

/// Prints one row: times of program and gradient, their ratio, and the peak of the gradient's plan in KiB.
macro_rules! price {
    ($device:expr, $wanted:expr, $program:ident, ($($wrt:ident),*), ($($argument:expr),* $(,)?)) => {
        if stringify!($program).contains($wanted) {
            let mut loss = $device.scalar(0.0f64)?;
            let compiled = $program().compile($device)?;
            let program = mean(|| {
                let _done = compiled.launch(($($argument,)* &mut loss))?;
                Ok(())
            })?;
            let g = $program().grad($program::loss)$(.wrt($program::$wrt))*.budget(Budget::StoreAll).compile($device)?;
            let peak = g.plan(($($argument,)* &mut loss))?.peak_bytes();
            let mut out = g.launch(($($argument,)* &mut loss))?;
            let gradient = mean(|| Ok(g.launch_into(&mut out, ($($argument,)* &mut loss))?))?;
            println!(
                "{:<16} {program:>10.1} {gradient:>10.1} {:>8.1} {:>10}",
                stringify!($program),
                gradient / program,
                peak.div_ceil(1024)
            );
        }
    };
}

fn main() -> Result<()> {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let wanted = wanted.as_str();
    let device = &ebbtide_cpu::Options::new().threads(1).build()?.0;
    println!("{:<16} {:>10} {:>10} {:>8} {:>10}", "microseconds", "program", "gradient", "ratio", "KiB");
    let line = |n: usize| device.array(&numbers(n));
    let plane = |n: usize, m: usize| device.array_with_shape([n, m], &numbers(n * m));
    let space = |n: usize, m: usize, l: usize| device.array_with_shape([n, m, l], &numbers(n * m * l));

    // Rows, slabs, sides, elements.
    let (mut u, mut v) = (line(2000)?, line(2000)?);
    price!(device, wanted, in_place, (u), (&mut u, &mut v, 400));
    let mut x = plane(401, 2000)?;
    price!(device, wanted, trajectory, (x), (&mut x));
    let mut x = line(401 * 2000)?;
    price!(device, wanted, flat_rows, (x), (&mut x, 2000, 400));
    let mut x = plane(2, 2000)?;
    price!(device, wanted, two_rows, (x), (&mut x, 400));
    let (mut u, mut v, mut a, mut b) = (line(2000)?, line(2000)?, line(2000)?, line(2000)?);
    price!(device, wanted, ring_in_place, (u, v), (&mut u, &mut v, &mut a, &mut b, 400));
    let (mut u, mut v) = (plane(401, 2000)?, plane(401, 2000)?);
    price!(device, wanted, ring_of_rows, (u, v), (&mut u, &mut v));
    let (mut p, mut q, mut r, c) = (plane(64, 64)?, plane(64, 64)?, plane(64, 64)?, plane(64, 64)?);
    price!(device, wanted, wave_in_place, (p, q, c), (&mut p, &mut q, &mut r, &c, 98));
    let (mut p, c) = (space(100, 64, 64)?, plane(64, 64)?);
    price!(device, wanted, wave, (p, c), (&mut p, &c));
    let seen = device.array(&(0..400).map(|k| (number(k) * 8.0) as i32).collect::<Vec<i32>>())?;
    let (mut alpha, transition, emission) = (plane(400, 64)?, plane(64, 64)?, plane(64, 8)?);
    price!(
        device,
        wanted,
        hidden_markov,
        (alpha, transition, emission),
        (&mut alpha, &transition, &emission, &seen)
    );
    let (mut x, mut y) = (plane(128, 128)?, plane(128, 128)?);
    price!(device, wanted, halo_rows, (x), (&mut x, &mut y, 100));
    let mut x = plane(16, 1000)?;
    price!(device, wanted, halo_alone, (x), (&mut x, 1000));
    price!(device, wanted, one_row, (x), (&mut x, 1000, 7));
    let mut x = plane(200, 200)?;
    price!(device, wanted, rows_in_turn, (x), (&mut x, 10));
    let mut x = space(20, 50, 50)?;
    price!(device, wanted, one_slab, (x), (&mut x, 200));
    let mut x = line(1000)?;
    price!(device, wanted, one_element, (x), (&mut x, 50_000));
    let (mut u, mut v) = (plane(128, 128)?, plane(128, 128)?);
    price!(device, wanted, sides, (u), (&mut u, &mut v, 100));
    let (mut a, mut sum) = (line(4096)?, device.scalar(0.0f64)?);
    price!(device, wanted, tree_sum, (a), (&mut a, &mut sum, 20));
    let mut x = line(8192)?;
    price!(device, wanted, levels, (x), (&mut x, 4096, 20));

    // Factors and sweeps.
    let mut a = heavy(device, 96)?;
    price!(device, wanted, lu_loops, (a), (&mut a));
    price!(device, wanted, lu_columns, (a), (&mut a));
    price!(device, wanted, lu_planes, (a), (&mut a));
    price!(device, wanted, cholesky, (a), (&mut a));
    let n = 100_000;
    let (a, b) = (line(n)?, device.array(&numbers(n).iter().map(|x| 3.0 + x).collect::<Vec<f64>>())?);
    let (mut c, mut d) = (line(n)?, line(n)?);
    price!(device, wanted, thomas, (a, b, c, d), (&a, &b, &mut c, &mut d));
    let (f, mut x) = (line(1000)?, line(1000)?);
    price!(device, wanted, gauss_seidel, (f, x), (&f, &mut x, 100));
    let (l, mut x) = (heavy(device, 400)?, line(400)?);
    price!(device, wanted, substitution, (l, x), (&l, &mut x));

    // Sums.
    let (x, w, mut y) = (line(96)?, plane(96, 96)?, line(96)?);
    price!(device, wanted, sum_in_sum, (x, w), (&x, &w, &mut y));
    price!(device, wanted, sum_of_sums, (x, w), (&x, &w, &mut y));
    price!(device, wanted, triangle_sums, (x, w), (&x, &w, &mut y));
    price!(device, wanted, double_sum, (x, w), (&x, &w, &mut y));
    let (x, w, mut y) = (line(32)?, plane(32, 32)?, line(32)?);
    price!(device, wanted, three_sums, (x, w), (&x, &w, &mut y));

    // Loops in place whose length nobody knows.
    let (c, mut x) = (line(10_000)?, line(10_000)?);
    price!(device, wanted, roots, (c), (&c, &mut x));
    let (c, mut x) = (plane(100, 64)?, plane(100, 64)?);
    price!(device, wanted, relaxed_rows, (c), (&c, &mut x));
    Ok(())
}
