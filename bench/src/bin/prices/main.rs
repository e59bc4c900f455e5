//! What gradients cost: time of the gradient over time of the program, and the memory that it holds, for programs that
//! overwrite parts of arrays, factor matrices, and sum within sums. One thread, every tape kept, launches alone.
//!
//! `cargo run -p ebbtide-bench --bin prices -- [NAME]`

use ebbtide::prelude::*;
use rustix::time::{ClockId, clock_gettime};

mod nests;
mod rows;

use nests::*;
use rows::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Processor time of this thread in microseconds: other work on the machine does not count.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The least that a run takes, in microseconds. What `work` measures is the run alone: it may prepare something before.
fn least(mut work: impl FnMut() -> Result<f64>) -> Result<f64> {
    work()?;
    let (mut least, mut all, mut runs) = (f64::INFINITY, 0.0, 0);
    while all < 1e5 || runs < 20 {
        let taken = work()?;
        (least, all, runs) = (least.min(taken), all + taken, runs + 1);
    }
    Ok(least)
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

/// Prints one row: times of program and gradient, their ratio, and the peak of the gradient's plan in KiB. Each run of the program
/// has arguments of its own: what a program makes of its own results may be numbers that take longer, or none.
macro_rules! price {
    ($device:expr, $wanted:expr, $program:ident by $($wrt:ident),+ { $($prepare:tt)* } ($($argument:expr),* $(,)?)) => {
        if stringify!($program).contains($wanted) {
            let mut loss = $device.scalar(0.0f64)?;
            let compiled = $program().compile($device)?;
            let program = least(|| {
                $($prepare)*
                let begun = now();
                let _done = compiled.launch(($($argument,)* &mut loss))?;
                Ok(now() - begun)
            })?;
            let g = $program().grad($program::loss)$(.wrt($program::$wrt))*.budget(Budget::StoreAll).compile($device)?;
            $($prepare)*
            let mut out = g.launch(($($argument,)* &mut loss))?;
            // The first launch has found out what only a run can tell.
            let peak = g.plan(($($argument,)* &mut loss))?.peak_bytes();
            let gradient = least(|| {
                let begun = now();
                g.launch_into(&mut out, ($($argument,)* &mut loss))?;
                Ok(now() - begun)
            })?;
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
    let device = &ebbtide_cpu::Options::new().threads(1).optimize(ebbtide_cpu::Optimize::Always).build()?.0;
    println!("{:<16} {:>10} {:>10} {:>8} {:>10}", "microseconds", "program", "gradient", "ratio", "KiB");
    let line = |n: usize| device.array(&numbers(n));
    let plane = |n: usize, m: usize| device.array_with_shape([n, m], &numbers(n * m));
    let space = |n: usize, m: usize, l: usize| device.array_with_shape([n, m, l], &numbers(n * m * l));

    // Rows, slabs, sides, elements.
    price! { device, wanted, in_place by u {
        let (mut u, mut v) = (line(2000)?, line(2000)?);
    } (&mut u, &mut v, 400) }
    price! { device, wanted, trajectory by x {
        let mut x = plane(401, 2000)?;
    } (&mut x) }
    price! { device, wanted, flat_rows by x {
        let mut x = line(401 * 2000)?;
    } (&mut x, 2000, 400) }
    price! { device, wanted, two_rows by x {
        let mut x = plane(2, 2000)?;
    } (&mut x, 400) }
    price! { device, wanted, ring_in_place by u, v {
        let (mut u, mut v, mut a, mut b) = (line(2000)?, line(2000)?, line(2000)?, line(2000)?);
    } (&mut u, &mut v, &mut a, &mut b, 400) }
    price! { device, wanted, ring_of_rows by u, v {
        let (mut u, mut v) = (plane(401, 2000)?, plane(401, 2000)?);
    } (&mut u, &mut v) }
    price! { device, wanted, wave_in_place by p, q, c {
        let (mut p, mut q, mut r, c) = (plane(64, 64)?, plane(64, 64)?, plane(64, 64)?, plane(64, 64)?);
    } (&mut p, &mut q, &mut r, &c, 98) }
    price! { device, wanted, wave by p, c {
        let (mut p, c) = (space(100, 64, 64)?, plane(64, 64)?);
    } (&mut p, &c) }
    let seen = device.array(&(0..400).map(|k| (number(k) * 8.0) as i32).collect::<Vec<i32>>())?;
    price! { device, wanted, hidden_markov by alpha, transition, emission {
        let (mut alpha, transition, emission) = (plane(400, 64)?, plane(64, 64)?, plane(64, 8)?);
    } (&mut alpha, &transition, &emission, &seen) }
    price! { device, wanted, halo_rows by x {
        let (mut x, mut y) = (plane(128, 128)?, plane(128, 128)?);
    } (&mut x, &mut y, 100) }
    price! { device, wanted, halo_alone by x {
        let mut x = plane(16, 1000)?;
    } (&mut x, 1000) }
    price! { device, wanted, one_row by x {
        let mut x = plane(16, 1000)?;
    } (&mut x, 1000, 7) }
    price! { device, wanted, rows_in_turn by x {
        let mut x = plane(200, 200)?;
    } (&mut x, 10) }
    price! { device, wanted, one_slab by x {
        let mut x = space(20, 50, 50)?;
    } (&mut x, 200) }
    price! { device, wanted, one_element by x {
        let mut x = line(1000)?;
    } (&mut x, 50_000) }
    price! { device, wanted, sides by u {
        let (mut u, mut v) = (plane(128, 128)?, plane(128, 128)?);
    } (&mut u, &mut v, 100) }
    price! { device, wanted, tree_sum by a {
        let (mut a, mut sum) = (line(4096)?, device.scalar(0.0f64)?);
    } (&mut a, &mut sum, 20) }
    price! { device, wanted, levels by x {
        let mut x = line(8192)?;
    } (&mut x, 4096, 20) }

    // Factors and sweeps.
    price! { device, wanted, lu_loops by a {
        let mut a = heavy(device, 96)?;
    } (&mut a) }
    price! { device, wanted, lu_columns by a {
        let mut a = heavy(device, 96)?;
    } (&mut a) }
    price! { device, wanted, lu_planes by a {
        let mut a = heavy(device, 96)?;
    } (&mut a) }
    price! { device, wanted, cholesky by a {
        let mut a = heavy(device, 96)?;
    } (&mut a) }
    let n = 100_000;
    price! { device, wanted, thomas by a, b, c, d {
        let (a, b) = (line(n)?, device.array(&numbers(n).iter().map(|x| 3.0 + x).collect::<Vec<f64>>())?);
        let (mut c, mut d) = (line(n)?, line(n)?);
    } (&a, &b, &mut c, &mut d) }
    price! { device, wanted, gauss_seidel by f, x {
        let (f, mut x) = (line(1000)?, line(1000)?);
    } (&f, &mut x, 100) }
    price! { device, wanted, substitution by l, x {
        let (l, mut x) = (heavy(device, 400)?, line(400)?);
    } (&l, &mut x) }

    // Sums.
    price! { device, wanted, sum_in_sum by x, w {
        let (x, w, mut y) = (line(96)?, plane(96, 96)?, line(96)?);
    } (&x, &w, &mut y) }
    price! { device, wanted, sum_of_sums by x, w {
        let (x, w, mut y) = (line(96)?, plane(96, 96)?, line(96)?);
    } (&x, &w, &mut y) }
    price! { device, wanted, triangle_sums by x, w {
        let (x, w, mut y) = (line(96)?, plane(96, 96)?, line(96)?);
    } (&x, &w, &mut y) }
    price! { device, wanted, double_sum by x, w {
        let (x, w, mut y) = (line(96)?, plane(96, 96)?, line(96)?);
    } (&x, &w, &mut y) }
    price! { device, wanted, three_sums by x, w {
        let (x, w, mut y) = (line(32)?, plane(32, 32)?, line(32)?);
    } (&x, &w, &mut y) }

    // Loops in place whose length nobody knows.
    price! { device, wanted, roots by c {
        let (c, mut x) = (line(10_000)?, line(10_000)?);
    } (&c, &mut x) }
    price! { device, wanted, relaxed_rows by c {
        let (c, mut x) = (plane(100, 64)?, plane(100, 64)?);
    } (&c, &mut x) }
    Ok(())
}
