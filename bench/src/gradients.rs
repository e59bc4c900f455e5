//! Gradients against hand-derived adjoints under the same schedule.

use std::time::{Duration, Instant};

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Options};

use crate::reference::{Reference, aligned, memory};
use crate::{Result, number, timed};

#[program]
fn pointwise(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = s.len();
    for _t in 0..steps {
        for i in par(0..n) {
            s[i] += 0.1 * s[i].tanh() * p[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += s[i] * s[i];
    }
}

#[program]
fn burgers(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let c = u[i];
            let r = u[(i + 1) % n];
            next[i] = c + 0.01 * (0.1 * (l - 2.0 * c + r) - 0.5 * c * (r - l));
        }
        swap(u, next);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[program]
fn wave(
    u: &mut Array2<f32>,
    prev: &mut Array2<f32>,
    c: &Array2<f32>,
    source: &Array1<f32>,
    seen: &mut Array2<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    let n = u.dim(0);
    let m = u.dim(1);
    for t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let x = u[[i, j]];
            let lap = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * x;
            prev[[i, j]] = 2.0 * x - prev[[i, j]] + c[[i, j]] * lap;
        }
        swap(u, prev);
        u[[8, m / 2]] += source[t];
        for j in par(0..m) {
            seen[[t, j]] = u[[2, j]];
        }
    }
    for (t, j) in par(0..seen.dim(0), 0..seen.dim(1)) {
        loss[[]] += seen[[t, j]] * seen[[t, j]];
    }
}

/// One line of the table.
struct Line {
    name: &'static str,
    plan: &'static str,
    threads: usize,
    steps: usize,
    ours: Duration,
    theirs: Duration,
    difference: f64,
}

impl Line {
    fn print(&self) {
        let per_step = |d: Duration| d.as_secs_f64() * 1e6 / self.steps as f64;
        println!(
            "{:<10} {:<10} {} threads: {:>9.3} us per step, C {:>9.3}, ratio {:.2}, largest difference {:.1e}",
            self.name,
            self.plan,
            self.threads,
            per_step(self.ours),
            per_step(self.theirs),
            self.ours.as_secs_f64() / self.theirs.as_secs_f64(),
            self.difference
        );
    }
}

/// The best of several rounds in which both take turns.
fn take_turns(
    mut ours: impl FnMut() -> Result<()>,
    mut theirs: impl FnMut() -> Result<()>,
) -> Result<(Duration, Duration)> {
    let (mut best_ours, mut best_theirs) = (Duration::MAX, Duration::MAX);
    let begun = Instant::now();
    for round in 0.. {
        best_ours = best_ours.min(timed(&mut ours)?);
        best_theirs = best_theirs.min(timed(&mut theirs)?);
        if round > 2 && begun.elapsed() > Duration::from_millis(1500) {
            break;
        }
    }
    Ok((best_ours, best_theirs))
}

fn floats<T: Copy>(words: &mut [u64], count: usize) -> &mut [T] {
    // SAFETY: `memory` made room for as many elements behind the alignment.
    unsafe { std::slice::from_raw_parts_mut(aligned(words).cast(), count) }
}

fn largest_difference(ours: impl Iterator<Item = f64>, theirs: impl Iterator<Item = f64>) -> f64 {
    let pairs: Vec<(f64, f64)> = ours.zip(theirs).collect();
    let size = pairs.iter().fold(1e-300f64, |m, (_, t)| m.max(t.abs()));
    pairs.iter().fold(0.0f64, |m, (o, t)| m.max((o - t).abs() / size))
}

/// Store-all, and a state every √n steps.
fn plans(steps: usize) -> [(&'static str, usize, Budget); 2] {
    let period = (steps as f64).sqrt().ceil() as usize;
    [("store-all", steps, Budget::StoreAll), ("sqrt", period, Budget::Periodic { period: period as u64 })]
}

/// Runs the workloads that `wanted` names.
pub fn run(reference: &Reference, cache: &Cache, wanted: impl Fn(&str) -> bool) -> Result<()> {
    for threads in [1, 2] {
        let (device, _) = Options::new().threads(threads).cache(cache.clone()).build()?;
        if wanted("pointwise") && threads == 1 {
            let (m, steps) = (104, 1000);
            let start: Vec<f64> = (0..m).map(number).collect();
            let (mut s, p, mut loss) = (device.array(&start)?, device.array(&start)?, device.zeros([])?);
            let g = pointwise().grad(pointwise::loss).wrt(pointwise::s).wrt(pointwise::p).compile(&device)?;
            for (plan, period, budget) in plans(steps) {
                let g = g.with_budget(budget);
                let mut out = g.launch((&mut s, &p, steps, &mut loss))?;
                let sizes = [m, m, m, m, (period + 1) * m, (steps / period + 1) * m];
                let mut theirs: Vec<Vec<u64>> = sizes.iter().map(|n| memory(8 * n)).collect();
                floats(&mut theirs[0], m).copy_from_slice(&start);
                floats(&mut theirs[1], m).copy_from_slice(&start);
                let (ours, c) = take_turns(
                    || Ok(g.launch_into(&mut out, (&mut s, &p, steps, &mut loss))?),
                    || {
                        reference.run(
                            "pointwise_gradient",
                            &mut theirs,
                            [m as i64, period as i64],
                            steps as i64,
                            1,
                        )
                    },
                )?;
                let found: Vec<f64> = floats(&mut theirs[3], m).to_vec();
                let difference =
                    largest_difference(out.get(pointwise::p)?.to_vec().into_iter(), found.into_iter());
                Line { name: "pointwise", plan, threads, steps, ours, theirs: c, difference }.print();
            }
        }
        if wanted("burgers") {
            let (m, steps) = (10_000, 1000);
            let start: Vec<f64> = (0..m).map(number).collect();
            let (mut u, mut next, mut loss) = (device.array(&start)?, device.zeros([m])?, device.zeros([])?);
            let g = burgers().grad(burgers::loss).wrt(burgers::u).compile(&device)?;
            for (plan, period, budget) in plans(steps) {
                let g = g.with_budget(budget);
                let mut out = g.launch((&mut u, &mut next, steps, &mut loss))?;
                let sizes = [m, m, m, (period + 1) * m, (steps / period + 1) * m, m, m];
                let mut theirs: Vec<Vec<u64>> = sizes.iter().map(|n| memory(8 * n)).collect();
                floats(&mut theirs[0], m).copy_from_slice(&start);
                let (ours, c) = take_turns(
                    || Ok(g.launch_into(&mut out, (&mut u, &mut next, steps, &mut loss))?),
                    || {
                        reference.run(
                            "burgers_gradient",
                            &mut theirs,
                            [m as i64, period as i64],
                            steps as i64,
                            threads as i32,
                        )
                    },
                )?;
                let found: Vec<f64> = floats(&mut theirs[1], m).to_vec();
                let difference =
                    largest_difference(out.get(burgers::u)?.to_vec().into_iter(), found.into_iter());
                Line { name: "burgers", plan, threads, steps, ours, theirs: c, difference }.print();
            }
        }
        if wanted("wave") {
            let (m, steps) = (512, 200);
            let plane: Vec<f32> = (0..m * m).map(|k| 0.1 + number(k) as f32).collect();
            let pulses: Vec<f32> = (0..steps).map(|k| number(k) as f32).collect();
            let c = device.array_with_shape([m, m], &plane)?;
            let source = device.array(&pulses)?;
            let (mut u, mut prev) = (device.zeros([m, m])?, device.zeros([m, m])?);
            let (mut seen, mut loss) = (device.zeros([steps, m])?, device.zeros([])?);
            let g = wave().grad(wave::loss).wrt(wave::c).compile(&device)?;
            for (plan, period, budget) in plans(steps) {
                let g = g.with_budget(budget);
                let mut out = g.launch((&mut u, &mut prev, &c, &source, &mut seen, steps, &mut loss))?;
                let size = m * m;
                let sizes = [
                    size,
                    size,
                    size,
                    steps,
                    size,
                    size,
                    size,
                    (period + 2) * size,
                    2 * (steps / period + 1) * size,
                    2 * size,
                    steps * m,
                ];
                let mut theirs: Vec<Vec<u64>> = sizes.iter().map(|n| memory(4 * n)).collect();
                floats(&mut theirs[2], size).copy_from_slice(&plane);
                floats(&mut theirs[3], steps).copy_from_slice(&pulses);
                let (ours, c_time) = take_turns(
                    || {
                        Ok(g.launch_into(
                            &mut out,
                            (&mut u, &mut prev, &c, &source, &mut seen, steps, &mut loss),
                        )?)
                    },
                    || {
                        reference.run(
                            "wave_gradient",
                            &mut theirs,
                            [m as i64, period as i64],
                            steps as i64,
                            threads as i32,
                        )
                    },
                )?;
                let found: Vec<f32> = floats(&mut theirs[4], size).to_vec();
                let ours_c = out.get(wave::c)?.to_vec();
                let difference =
                    largest_difference(ours_c.into_iter().map(f64::from), found.into_iter().map(f64::from));
                Line { name: "wave", plan, threads, steps, ours, theirs: c_time, difference }.print();
            }
        }
    }
    Ok(())
}
