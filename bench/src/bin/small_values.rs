//! Vectors and matrices as elements, next to the same layout written by components: one thread, program and gradient.
//!
//! `cargo run --release -p ebbtide-bench --bin small_values [-- --quick]`

use std::time::{Duration, Instant};

use ebbtide::prelude::*;
use ebbtide_cpu::Options;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A chain of springs in space.
#[program]
fn chain(x: &mut Array1<Vec3<f64>>, v: &mut Array1<Vec3<f64>>, k: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..steps {
        for i in par(1..n - 1) {
            let l = x[i - 1] - x[i];
            let r = x[i + 1] - x[i];
            v[i] += k * (l * (l.norm() - 1.0) + r * (r.norm() - 1.0));
        }
        for i in par(1..n - 1) {
            x[i] += 0.01 * v[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].dot(x[i]);
    }
}

#[program]
fn chain_by_components(
    x: &mut Array2<f64>,
    v: &mut Array2<f64>,
    k: f64,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = x.dim(0);
    for _t in 0..steps {
        for i in par(1..n - 1) {
            let l0 = x[[i - 1, 0]] - x[[i, 0]];
            let l1 = x[[i - 1, 1]] - x[[i, 1]];
            let l2 = x[[i - 1, 2]] - x[[i, 2]];
            let r0 = x[[i + 1, 0]] - x[[i, 0]];
            let r1 = x[[i + 1, 1]] - x[[i, 1]];
            let r2 = x[[i + 1, 2]] - x[[i, 2]];
            let left = (l0 * l0 + l1 * l1 + l2 * l2).sqrt() - 1.0;
            let right = (r0 * r0 + r1 * r1 + r2 * r2).sqrt() - 1.0;
            v[[i, 0]] += k * (l0 * left + r0 * right);
            v[[i, 1]] += k * (l1 * left + r1 * right);
            v[[i, 2]] += k * (l2 * left + r2 * right);
        }
        for i in par(1..n - 1) {
            x[[i, 0]] += 0.01 * v[[i, 0]];
            x[[i, 1]] += 0.01 * v[[i, 1]];
            x[[i, 2]] += 0.01 * v[[i, 2]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]] + x[[i, 2]] * x[[i, 2]];
    }
}

/// Deformations that turn and relax, as particles of a solid have.
#[program]
fn deform(f: &mut Array1<Mat2<f64>>, c: &Array1<Mat2<f64>>, k: f64, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..f.len()) {
            let g = f[i] + k * (c[i] * f[i]);
            f[i] = g - (0.1 * k * (g.determinant() - 1.0)) * g;
        }
    }
    for i in par(0..f.len()) {
        loss[[]] += f[i].trace();
    }
}

#[program]
fn deform_by_components(f: &mut Array3<f64>, c: &Array3<f64>, k: f64, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..f.dim(0)) {
            let f00 = f[[i, 0, 0]];
            let f01 = f[[i, 0, 1]];
            let f10 = f[[i, 1, 0]];
            let f11 = f[[i, 1, 1]];
            let g00 = f00 + k * (c[[i, 0, 0]] * f00 + c[[i, 0, 1]] * f10);
            let g01 = f01 + k * (c[[i, 0, 0]] * f01 + c[[i, 0, 1]] * f11);
            let g10 = f10 + k * (c[[i, 1, 0]] * f00 + c[[i, 1, 1]] * f10);
            let g11 = f11 + k * (c[[i, 1, 0]] * f01 + c[[i, 1, 1]] * f11);
            let s = 0.1 * k * (g00 * g11 - g01 * g10 - 1.0);
            f[[i, 0, 0]] = g00 - s * g00;
            f[[i, 0, 1]] = g01 - s * g01;
            f[[i, 1, 0]] = g10 - s * g10;
            f[[i, 1, 1]] = g11 - s * g11;
        }
    }
    for i in par(0..f.dim(0)) {
        loss[[]] += f[[i, 0, 0]] + f[[i, 1, 1]];
    }
}

/// Springs between elements that data names: forces are added and subtracted there.
#[program]
fn springs(x: &mut Array1<Vec3<f64>>, ends: &Array1<[i32; 2]>, k: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut f = Array1::<Vec3<f64>>::zeros([n]);
    for _t in 0..steps {
        fill(f, Vec3::zero());
        for s in par(0..ends.len()) {
            let a = ends[s][0] as usize;
            let b = ends[s][1] as usize;
            let p = k * (x[b] - x[a]);
            f[a] += p;
            f[b] -= p;
        }
        for i in par(0..n) {
            x[i] += 0.01 * f[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i].dot(x[i]);
    }
}

#[program]
fn springs_by_components(
    x: &mut Array2<f64>,
    ends: &Array2<i32>,
    k: f64,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = x.dim(0);
    let mut f = Array2::<f64>::zeros([n, 3]);
    for _t in 0..steps {
        fill(f, 0.0);
        for s in par(0..ends.dim(0)) {
            let a = ends[[s, 0]] as usize;
            let b = ends[[s, 1]] as usize;
            let p0 = k * (x[[b, 0]] - x[[a, 0]]);
            let p1 = k * (x[[b, 1]] - x[[a, 1]]);
            let p2 = k * (x[[b, 2]] - x[[a, 2]]);
            f[[a, 0]] += p0;
            f[[a, 1]] += p1;
            f[[a, 2]] += p2;
            f[[b, 0]] -= p0;
            f[[b, 1]] -= p1;
            f[[b, 2]] -= p2;
        }
        for i in par(0..n) {
            x[[i, 0]] += 0.01 * f[[i, 0]];
            x[[i, 1]] += 0.01 * f[[i, 1]];
            x[[i, 2]] += 0.01 * f[[i, 2]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[i, 0]] * x[[i, 0]] + x[[i, 1]] * x[[i, 1]] + x[[i, 2]] * x[[i, 2]];
    }
}

/// The best times of two runs that take turns.
fn best(mut runs: [Box<dyn FnMut() + '_>; 2], at_least: Duration) -> [f64; 2] {
    let mut best = [f64::MAX; 2];
    let begun = Instant::now();
    for round in 0.. {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = best.min(start.elapsed().as_secs_f64());
        }
        if round > 2 && begun.elapsed() > at_least {
            break;
        }
    }
    best
}

fn number(k: usize) -> f64 {
    ((k.wrapping_mul(2_654_435_761) >> 7) % 2048) as f64 / 2048.0
}

/// Measures a program and its twin by components: both are given arrays with the same elements.
macro_rules! compare {
    ($device:expr, $time:expr, $name:ident, $twin:ident, $steps:expr, [$($mine:expr),*], [$($theirs:expr),*]) => {{
        let device = $device;
        let (one, two) = ($name().compile(device)?, $twin().compile(device)?);
        let program = best(
            [
                Box::new(|| {
                    let mut run = || -> Result<()> {
                        let mut loss = device.scalar(0.0)?;
                        one.launch(($($mine,)* 0.1, $steps, &mut loss))?;
                        Ok(())
                    };
                    run().unwrap_or_else(|error| println!("{error}"));
                }),
                Box::new(|| {
                    let mut run = || -> Result<()> {
                        let mut loss = device.scalar(0.0)?;
                        two.launch(($($theirs,)* 0.1, $steps, &mut loss))?;
                        Ok(())
                    };
                    run().unwrap_or_else(|error| println!("{error}"));
                }),
            ],
            $time,
        );
        let of_one = $name().grad($name::loss).wrt($name::k).compile(device)?;
        let of_two = $twin().grad($twin::loss).wrt($twin::k).compile(device)?;
        let loss = device.scalar(0.0)?;
        let gradient = best(
            [
                Box::new(|| {
                    of_one.launch(($($mine,)* 0.1, $steps, &loss)).map(drop).unwrap_or_else(|e| println!("{e}"));
                }),
                Box::new(|| {
                    of_two.launch(($($theirs,)* 0.1, $steps, &loss)).map(drop).unwrap_or_else(|e| println!("{e}"));
                }),
            ],
            $time,
        );
        let row = |what: &str, [one, two]: [f64; 2]| {
            println!("| {} {what} | {:.3} | {:.3} | {:.3} |", stringify!($name), 1e3 * one, 1e3 * two, one / two);
        };
        row("program", program);
        row("gradient", gradient);
    }};
}

fn main() -> Result<()> {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let time = Duration::from_millis(if quick { 500 } else { 4000 });
    let (device, _) = Options::new().threads(1).build()?;
    let (n, steps) = (2000, 50);
    println!("| | small values, ms | components, ms | ratio |");
    println!("|---|---|---|---|");
    let vectors = |seed: usize| {
        device.from_fn([n], move |[i]| {
            Vec3::new(i as f64 + number(3 * i + seed), number(3 * i + 1 + seed), number(3 * i + 2 + seed))
        })
    };
    let components = |seed: usize| {
        device.from_fn([n, 3], move |[i, k]| {
            if k == 0 { i as f64 + number(3 * i + seed) } else { number(3 * i + k + seed) }
        })
    };
    let (mut x, mut v) = (vectors(0)?, vectors(7)?);
    let (mut y, mut w) = (components(0)?, components(7)?);
    compare!(&device, time, chain, chain_by_components, steps, [&mut x, &mut v], [&mut y, &mut w]);
    let matrix = |i: usize| Mat2::new(1.0, 0.1 * number(i), 0.1 * number(i + 5), 1.0);
    let (mut f, c) = (device.from_fn([n], |[i]| matrix(i))?, device.from_fn([n], |[i]| matrix(i + 9))?);
    let entry = |i: usize, r: usize, c: usize| matrix(i)[[r, c]];
    let mut g = device.from_fn([n, 2, 2], |[i, r, c]| entry(i, r, c))?;
    let d = device.from_fn([n, 2, 2], |[i, r, c]| entry(i + 9, r, c))?;
    compare!(&device, time, deform, deform_by_components, steps, [&mut f, &c], [&mut g, &d]);
    let end = |s: usize, k: usize| (s * 7 + k * (1 + s % 5)) as i32 % n as i32;
    let ends = device.from_fn([3 * n], |[s]| [end(s, 0), end(s, 1)])?;
    let flat = device.from_fn([3 * n, 2], |[s, k]| end(s, k))?;
    let (mut x, mut y) = (vectors(0)?, components(0)?);
    compare!(&device, time, springs, springs_by_components, steps, [&mut x, &ends], [&mut y, &flat]);
    Ok(())
}
