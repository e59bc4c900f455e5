//! Classes of programs that others wrote: microseconds per step of program and gradient, launches alone; on a GPU beside the
//! best that is known by hand or from JAX (`highest`) for the same problem on an H200.
//!
//! `cargo run --release -p ebbtide-bench --bin classes -- cuda|THREADS [scatter|particles|all_pairs|heat|rows|products]`
//!
//! What cuBLAS needs for the same products: `python bench/peers/products_torch.py`.

use std::time::Instant;

use ebbtide::prelude::*;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[program]
fn deposit(
    cells: &mut Array1<f32>,
    cell: &Array1<i32>,
    charge: &Array1<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    for _t in 0..steps {
        for p in par(0..cell.len()) {
            cells[cell[p] as usize] += charge[p];
        }
    }
    for i in par(0..cells.len()) {
        loss[[]] += cells[i] * cells[i];
    }
}

/// Particles to grid and back: nine cells each, in loops.
#[program]
fn particles(
    x: &mut Array2<f32>,
    v: &mut Array2<f32>,
    mass: &mut Array2<f32>,
    moved: &mut Array2<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    let (n, cells) = (x.dim(0), mass.dim(0));
    let scale = cells as f32;
    for _t in 0..steps {
        for (a, b) in par(0..cells, 0..cells) {
            mass[[a, b]] = 0.0;
            moved[[a, b]] = 0.0;
        }
        for p in par(0..n) {
            let (px, py) = (x[[p, 0]] * scale, x[[p, 1]] * scale);
            let (bx, by) = (px as usize, py as usize);
            let (fx, fy) = (px - bx as f32, py - by as f32);
            for a in 0..3 {
                for b in 0..3 {
                    let (dx, dy) = (a as f32 - fx, b as f32 - fy);
                    let w = 1.0 / (1.0 + dx * dx + dy * dy);
                    mass[[bx + a, by + b]] += w;
                    moved[[bx + a, by + b]] += w * v[[p, 0]];
                }
            }
        }
        for p in par(0..n) {
            let (px, py) = (x[[p, 0]] * scale, x[[p, 1]] * scale);
            let (bx, by) = (px as usize, py as usize);
            let (fx, fy) = (px - bx as f32, py - by as f32);
            let mut sum = 0.0;
            for a in 0..3 {
                for b in 0..3 {
                    let (dx, dy) = (a as f32 - fx, b as f32 - fy);
                    sum += moved[[bx + a, by + b]] / (mass[[bx + a, by + b]] * (1.0 + dx * dx + dy * dy));
                }
            }
            v[[p, 0]] = 0.9 * v[[p, 0]] + 0.02 * sum;
        }
    }
    for p in par(0..n) {
        loss[[]] += v[[p, 0]] * v[[p, 0]];
    }
}

/// The corpus has these programs too.
mod physics {
    #![allow(dead_code, missing_docs, reason = "the corpus uses all of it")]
    use ebbtide::prelude::*;

    type Real = f32;

    include!("../../corpus/physics.rs");
}
use physics::all_pairs;

/// Forces between all pairs with sums that a device may take in parallel.
#[program]
fn all_pairs_sum(
    x: &mut Array2<f32>,
    v: &mut Array2<f32>,
    m: &Array1<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    let n = m.len();
    for _t in 0..steps {
        for (i, k) in par(0..n, 0..3) {
            let f = sum(0..n, |j| {
                let (dx, dy, dz) = (x[[j, 0]] - x[[i, 0]], x[[j, 1]] - x[[i, 1]], x[[j, 2]] - x[[i, 2]]);
                let d = dx * dx + dy * dy + dz * dz + 0.01;
                m[j] / (d * d.sqrt()) * (x[[j, k]] - x[[i, k]])
            });
            v[[i, k]] += 0.001 * f;
        }
        for (i, k) in par(0..n, 0..3) {
            x[[i, k]] += 0.001 * v[[i, k]];
        }
    }
    for (i, k) in par(0..n, 0..3) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

#[program]
fn heat(u: &mut Array3<f32>, v: &mut Array3<f32>, steps: usize, loss: &mut Array0<f32>) {
    let (n, m, l) = (u.dim(0), u.dim(1), u.dim(2));
    for _t in 0..steps {
        for (i, j, k) in par(1..n - 1, 1..m - 1, 1..l - 1) {
            let c = u[[i, j, k]];
            let around = u[[i - 1, j, k]]
                + u[[i + 1, j, k]]
                + u[[i, j - 1, k]]
                + u[[i, j + 1, k]]
                + u[[i, j, k - 1]]
                + u[[i, j, k + 1]];
            v[[i, j, k]] = c + (0.1 + 0.05 * c * c) * (around - 6.0 * c);
        }
        swap(u, v);
    }
    for (i, j, k) in par(0..n, 0..m, 0..l) {
        loss[[]] += u[[i, j, k]] * u[[i, j, k]];
    }
}

/// As many numbers without rows: what rows of three are compared with.
#[program]
fn moved_flat(x: &mut Array1<f32>, v: &mut Array1<f32>, steps: usize, loss: &mut Array0<f32>) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            x[i] += 0.001 * v[i] * (1.0 - x[i]);
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

#[program]
fn moved_rows(x: &mut Array2<f32>, v: &mut Array2<f32>, steps: usize, loss: &mut Array0<f32>) {
    for _t in 0..steps {
        for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
            x[[i, k]] += 0.001 * v[[i, k]] * (1.0 - x[[i, k]]);
        }
    }
    for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

#[program]
fn moved_masses(
    x: &mut Array2<f32>,
    v: &mut Array2<f32>,
    m: &mut Array1<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    for _t in 0..steps {
        for (i, k) in par(0..m.len(), 0..3) {
            x[[i, k]] += 0.001 * v[[i, k]] * (1.0 - x[[i, k]]) / m[i];
        }
    }
    for (i, k) in par(0..m.len(), 0..3) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

#[program]
fn moved_vectors(
    x: &mut Array1<Vec3<f32>>,
    v: &mut Array1<Vec3<f32>>,
    m: &mut Array1<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    for _t in 0..steps {
        for i in par(0..m.len()) {
            x[i] += v[i] * (0.001 * (1.0 - x[i].x) / m[i]);
        }
    }
    for i in par(0..m.len()) {
        loss[[]] += x[i].dot(x[i]);
    }
}

/// Two products a step, each of what the last one gave: rows of a batch by a square matrix.
#[program]
fn products(
    h: &mut Array2<f32>,
    z: &mut Array2<f32>,
    w: &mut Array2<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    for _t in 0..steps {
        matmul(h, w, z);
        matmul(z, w, h);
    }
    for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
        loss[[]] += h[[i, j]] * h[[i, j]];
    }
}

/// The shortest of some runs, in microseconds.
fn best(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut best = f64::INFINITY;
    let begun = Instant::now();
    for round in 0.. {
        let at = Instant::now();
        work()?;
        best = best.min(at.elapsed().as_secs_f64() * 1e6);
        if round > 3 && begun.elapsed().as_secs_f64() > 0.5 {
            break;
        }
    }
    Ok(best)
}

fn number(k: usize) -> f32 {
    let mixed = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as f32 / (1u64 << 24) as f32
}

/// Times a program and its gradient: the difference of two numbers of steps, so that what a launch costs once is left out.
macro_rules! class {
    ($device:expr, $name:expr, $reference:expr, $program:ident, $wrt:ident, $steps:expr, ($($array:ident),*), $loss:ident) => {{
        let compiled = $program().compile($device)?;
        let g = $program().grad($program::loss).wrt($program::$wrt).budget(Budget::StoreAll).compile($device)?;
        let mut times = [[0.0; 2]; 2];
        for (k, steps) in [$steps, 2 * $steps].into_iter().enumerate() {
            times[0][k] = best(|| {
                let _done = compiled.launch(($(&mut $array,)* steps, &mut $loss))?;
                Ok(())
            })?;
            let mut out = g.launch(($(&mut $array,)* steps, &mut $loss))?;
            times[1][k] = best(|| Ok(g.launch_into(&mut out, ($(&mut $array,)* steps, &mut $loss))?))?;
        }
        let [program, gradient] = times.map(|[one, two]| (two - one) / $steps as f64);
        println!("{:<34} {program:>9.1} / {gradient:<9.1} {:>5.1} x   {}", $name, gradient / program, $reference);
    }};
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let device = match arguments.next().as_deref() {
        Some("cuda") => {
            println!("{}", ebbtide_cuda::describe()?);
            ebbtide_cuda::Options::new().build()?.0
        }
        Some(threads) => {
            println!("{threads} threads of the CPU");
            ebbtide_cpu::Options::new()
                .threads(threads.parse()?)
                .optimize(ebbtide_cpu::Optimize::Always)
                .build()?
                .0
        }
        None => return Err("say `cuda` or a number of threads".into()),
    };
    let wanted = arguments.next().unwrap_or_default();
    println!(
        "{:<34} {:>9} / {:<9} {:>7}   JAX; by hand",
        "microseconds per step", "program", "gradient", "ratio"
    );
    let mut loss = device.scalar(0.0f32)?;
    if "scatter".contains(&wanted) {
        for (cells, reference) in [(100_000, "61 / 162 (atomics); 87"), (1, "")] {
            let n = 1_000_000;
            let mut sums = device.zeros::<f32, 1>([cells])?;
            let cell: Vec<i32> = (0..n).map(|k| (number(k) as f64 * cells as f64) as i32).collect();
            let charge: Vec<f32> = (0..n).map(|k| number(k + n)).collect();
            let (cell, charge) = (device.array(&cell)?, device.array(&charge)?);
            let compiled = deposit().compile(&device)?;
            let time = |steps: usize, sums: &mut Array1<f32>, loss: &mut Array0<f32>| {
                best(|| {
                    let _done = compiled.launch((&mut *sums, &cell, &charge, steps, &mut *loss))?;
                    Ok(())
                })
            };
            let (one, two) = (time(4, &mut sums, &mut loss)?, time(8, &mut sums, &mut loss)?);
            println!("{:<34} {:>9.1}   {reference}", format!("10^6 terms into {cells}"), (two - one) / 4.0);
        }
    }
    if "particles".contains(&wanted) {
        let (n, cells) = (100_000, 256);
        let at: Vec<f32> = (0..2 * n).map(|k| 0.05 + 0.9 * number(k)).collect();
        let mut x = device.array_with_shape([n, 2], &at)?;
        let mut v = device.array_with_shape([n, 2], &at)?;
        let mut mass = device.zeros::<f32, 2>([cells, cells])?;
        let mut moved = device.zeros::<f32, 2>([cells, cells])?;
        class!(&device, "10^5 particles, 256^2 cells", "", particles, v, 4, (x, v, mass, moved), loss);
    }
    if "all_pairs".contains(&wanted) {
        for (n, by_hand, sums) in [
            (1024, "22 / 37; one chain 92 / 241", "22 / 37; lanes 15.5"),
            (8192, "295 / 1306; one chain 717 / 1860", "295 / 1306; lanes 170"),
        ] {
            let at: Vec<f32> = (0..3 * n).map(number).collect();
            let mut x = device.array_with_shape([n, 3], &at)?;
            let mut v = device.zeros::<f32, 2>([n, 3])?;
            let mut m = device.array(&vec![1.0 / n as f32; n])?;
            class!(&device, format!("all pairs, {n}, loop"), by_hand, all_pairs, x, 4, (x, v, m), loss);
            class!(&device, format!("all pairs, {n}, sum"), sums, all_pairs_sum, x, 4, (x, v, m), loss);
        }
    }
    if "heat".contains(&wanted) {
        for (n, by_hand) in [(128, "55 / 100; 8.0 / 27.5"), (256, "392 / 688; 71 / 211")] {
            let at: Vec<f32> = (0..n * n * n).map(number).collect();
            let mut u = device.array_with_shape([n, n, n], &at)?;
            let mut v = device.array_with_shape([n, n, n], &at)?;
            class!(&device, format!("heat, {n}^3"), by_hand, heat, u, 20, (u, v), loss);
        }
    }
    if "rows".contains(&wanted) {
        let n = 100_000;
        let numbers: Vec<f32> = (0..3 * n).map(number).collect();
        let vectors: Vec<Vec3<f32>> = numbers.chunks(3).map(|c| Vec3::new(c[0], c[1], c[2])).collect();
        let (mut x, mut v) = (device.array(&numbers)?, device.array(&numbers)?);
        class!(&device, "3 10^5 numbers", "", moved_flat, x, 20, (x, v), loss);
        let mut m = device.array(&vec![1.0f32; n])?;
        let (mut x, mut v) =
            (device.array_with_shape([n, 3], &numbers)?, device.array_with_shape([n, 3], &numbers)?);
        class!(&device, "10^5 rows of 3", "", moved_rows, x, 20, (x, v), loss);
        class!(&device, "10^5 rows of 3, masses", "", moved_masses, x, 20, (x, v, m), loss);
        let (mut x, mut v) = (device.array(&vectors)?, device.array(&vectors)?);
        class!(&device, "10^5 vectors, masses", "", moved_vectors, x, 20, (x, v, m), loss);
    }
    if "products".contains(&wanted) {
        for (batch, n) in [(64, 512), (256, 1024), (1024, 1024), (2048, 2048)] {
            let scale = 1.0 / (n as f32).sqrt();
            let of = |count: usize, by: f32| -> Vec<f32> {
                (0..count).map(|k| by * (2.0 * number(k) - 1.0)).collect()
            };
            let mut h = device.array_with_shape([batch, n], &of(batch * n, 1.0))?;
            let mut z = device.zeros::<f32, 2>([batch, n])?;
            let mut w = device.array_with_shape([n, n], &of(n * n, scale))?;
            class!(
                &device,
                format!("two products, {batch} x {n} x {n}"),
                "",
                products,
                w,
                10,
                (h, z, w),
                loss
            );
        }
    }
    Ok(())
}
