//! What steps, passes and yields cost on the GPU.
//!
//! `bench/peers/cuda.cu` does the same work by hand, `bench/peers/cuda_jax.py` in JAX; run all three in one go.

use std::time::{Duration, Instant};

use ebbtide::Tiers;
use ebbtide::prelude::*;
use ebbtide_cuda::Options;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[program]
fn pointwise(s: &mut Array1<f32>, p: &Array1<f32>, steps: usize, loss: &mut Array0<f32>) {
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
fn wave(u: &mut Array2<f32>, prev: &mut Array2<f32>, c: &Array2<f32>, steps: usize, loss: &mut Array0<f32>) {
    let n = u.dim(0);
    let m = u.dim(1);
    for _t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let x = u[[i, j]];
            let lap = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * x;
            prev[[i, j]] = 2.0 * x - prev[[i, j]] + c[[i, j]] * lap;
        }
        swap(u, prev);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

/// The same with a source and a row of receivers, as surveys have them.
#[program]
fn survey(
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

/// Passes with two tiny tasks, until the data says so.
#[program]
fn passes(x: &mut Array1<f32>, y: &mut Array1<f32>, count: &mut Array0<i32>, limit: i32) {
    let n = x.len();
    while count[[]] < limit {
        for i in par(0..n) {
            y[i] = x[(i + 1) % n] + 1.0;
        }
        for i in par(0..n) {
            x[i] = 0.5 * y[(i + 1) % n];
        }
        count[[]] += 1;
    }
}

#[derive(Label)]
enum Stage {
    Step,
}

/// The same with a region that may yield in every pass.
#[program]
fn gated(
    x: &mut Array1<f32>,
    y: &mut Array1<f32>,
    count: &mut Array0<i32>,
    flag: &mut Array0<i32>,
    limit: i32,
) {
    let n = x.len();
    while count[[]] < limit {
        #[checkpoint(Stage::Step, yield_on = flag)]
        {
            for i in par(0..n) {
                y[i] = x[(i + 1) % n] + 1.0;
            }
            for i in par(0..n) {
                x[i] = 0.5 * y[(i + 1) % n];
            }
        }
        count[[]] += 1;
    }
}

/// A sum over a plane in every pass, as a norm that a loop looks at.
#[program]
fn sums(x: &Array2<f32>, steps: usize, sum: &mut Array0<f32>) {
    for _t in 0..steps {
        for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
            sum[[]] += x[[i, j]] * x[[i, j]];
        }
    }
}

/// Particles that add to the cells that they are in, in order.
#[program]
fn deposit(cells: &mut Array1<f32>, cell: &Array1<i32>, charge: &Array1<f32>) {
    for i in par(0..cell.len()) {
        cells[cell[i] as usize] += charge[i];
    }
}

/// The same in any order.
#[program]
fn deposit_relaxed(cells: &mut Array1<f32>, cell: &Array1<i32>, charge: &Array1<f32>) {
    #[relaxed]
    for i in par(0..cell.len()) {
        cells[cell[i] as usize] += charge[i];
    }
}

/// The best of several rounds.
fn best(mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    let begun = Instant::now();
    for round in 0.. {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed());
        if round > 3 && begun.elapsed() > Duration::from_millis(400) {
            break;
        }
    }
    Ok(best)
}

fn say(name: &str, time: Duration, steps: usize, target: f64) {
    let per = time.as_secs_f64() * 1e6 / steps as f64;
    let verdict =
        if target > 0.0 { format!("   (target {target}, {:.2} of it)", per / target) } else { String::new() };
    println!("  {name:<44} {per:>9.3} us{verdict}");
}

fn number(k: usize) -> f32 {
    ((k * 2654435761) % 1000) as f32 / 1000.0 - 0.5
}

fn run(device: &Device) -> Result<()> {
    const STEPS: usize = 1000;
    {
        let start: Vec<f32> = (0..100).map(number).collect();
        let (mut s, p, mut loss) = (device.array(&start)?, device.array(&start)?, device.zeros([])?);
        let primal = pointwise().compile(device)?;
        let time = best(|| {
            let _done = primal.launch((&mut s, &p, STEPS, &mut loss))?;
            Ok(())
        })?;
        say("pointwise 100 primal", time, STEPS, 0.0);
        let g = pointwise().grad(pointwise::loss).wrt(pointwise::s).wrt(pointwise::p).compile(device)?;
        for (name, budget) in [("store-all", Budget::StoreAll), ("sqrt", Budget::Periodic { period: 32 })] {
            let g = g.with_budget(budget);
            let mut out = g.launch((&mut s, &p, STEPS, &mut loss))?;
            let time = best(|| Ok(g.launch_into(&mut out, (&mut s, &p, STEPS, &mut loss))?))?;
            say(&format!("pointwise 100 gradient, {name}"), time, STEPS, 0.1);
        }
    }
    for (n, primal_target, target) in [(512, 0.0, 8.0), (2048, 0.0, 90.0)] {
        let field: Vec<f32> = (0..n * n).map(number).collect();
        let speed: Vec<f32> = (0..n * n).map(|k| 0.2 + 0.1 * number(k)).collect();
        let mut u = device.array_with_shape([n, n], &field)?;
        let (mut prev, c, mut loss) =
            (device.zeros([n, n])?, device.array_with_shape([n, n], &speed)?, device.zeros([])?);
        let primal = wave().compile(device)?;
        let time = best(|| {
            let _done = primal.launch((&mut u, &mut prev, &c, STEPS, &mut loss))?;
            Ok(())
        })?;
        say(&format!("wave {n} primal"), time, STEPS, primal_target);
        let g = wave().grad(wave::loss).wrt(wave::c).compile(device)?;
        // Every 32nd state; and what the plan makes of the bytes that this takes.
        let plan = g.plan((&mut u, &mut prev, &c, STEPS, &mut loss))?;
        let (state, tape) = (plan.loops[0].state_bytes, plan.loops[0].tape_bytes);
        let bytes = plan.fixed_bytes + 32 * (state + tape);
        for (name, budget) in
            [("sqrt", Budget::Periodic { period: 32 }), ("planned in those bytes", Budget::Bytes(bytes))]
        {
            let g = g.with_budget(budget);
            let mut out = g.launch((&mut u, &mut prev, &c, STEPS, &mut loss))?;
            let time = best(|| Ok(g.launch_into(&mut out, (&mut u, &mut prev, &c, STEPS, &mut loss))?))?;
            say(&format!("wave {n} gradient, {name}"), time, STEPS, target);
        }
        if n == 512 {
            let (source, mut seen) = (device.zeros([STEPS])?, device.zeros([STEPS, n])?);
            let primal = survey().compile(device)?;
            let time = best(|| {
                let _done = primal.launch((&mut u, &mut prev, &c, &source, &mut seen, STEPS, &mut loss))?;
                Ok(())
            })?;
            say(&format!("survey {n} primal"), time, STEPS, 0.0);
            let g = survey().grad(survey::loss).wrt(survey::c).compile(device)?;
            let g = g.with_budget(Budget::Periodic { period: 32 });
            let mut out = g.launch((&mut u, &mut prev, &c, &source, &mut seen, STEPS, &mut loss))?;
            let time = best(|| {
                Ok(g.launch_into(&mut out, (&mut u, &mut prev, &c, &source, &mut seen, STEPS, &mut loss))?)
            })?;
            say(&format!("survey {n} gradient, sqrt"), time, STEPS, 0.0);
        }
    }
    for n in [512, 2048] {
        const SUMS: usize = 100;
        let (x, mut sum) = (device.zeros([n, n])?, device.zeros([])?);
        let compiled = sums().compile(device)?;
        let time = best(|| {
            let _done = compiled.launch((&x, SUMS, &mut sum))?;
            Ok(())
        })?;
        say(&format!("sum of {n} x {n} squares"), time, SUMS, 0.0);
    }
    for n in [64, 100_000] {
        const LIMIT: i32 = 1000;
        let (mut x, mut y) = (device.zeros([n])?, device.zeros([n])?);
        let (mut count, mut flag) = (device.scalar(0i32)?, device.scalar(0i32)?);
        let compiled = passes().compile(device)?;
        let time = best(|| {
            count.fill(0)?;
            let _done = compiled.launch((&mut x, &mut y, &mut count, LIMIT))?;
            Ok(())
        })?;
        say(&format!("while pass, two tasks of {n}"), time, LIMIT as usize, 6.0);
        let compiled = gated().compile(device)?;
        let time = best(|| {
            count.fill(0)?;
            let _done = compiled.launch((&mut x, &mut y, &mut count, &mut flag, LIMIT))?;
            Ok(())
        })?;
        say(&format!("while pass, gated, two tasks of {n}"), time, LIMIT as usize, 8.0);
        const ROUNDS: usize = 100;
        let time = best(|| {
            for _ in 0..ROUNDS {
                count.fill(0)?;
                flag.fill(1)?;
                let mut status = compiled.launch((&mut x, &mut y, &mut count, &mut flag, 1))?;
                while let Status::Yielded(at) = status {
                    flag.fill(0)?;
                    status = compiled.resume(&at, (&mut x, &mut y, &mut count, &mut flag, 1))?;
                }
            }
            Ok(())
        })?;
        say(&format!("launch, yield, clear, resume, tasks of {n}"), time, ROUNDS, 60.0);
        let time = best(|| {
            for _ in 0..ROUNDS {
                let _done = compiled.launch((&mut x, &mut y, &mut count, &mut flag, 0))?;
            }
            Ok(())
        })?;
        say(&format!("launch of nothing, arrays of {n}"), time, ROUNDS, 0.0);
    }
    for (n, cells) in [(10_000usize, 10_000usize), (1_000_000, 100_000), (1_000_000, 1)] {
        let chosen: Vec<i32> = (0..n).map(|k| (k * 2654435761 % cells) as i32).collect();
        let charges: Vec<f32> = (0..n).map(number).collect();
        let (cell, charge) = (device.array(&chosen)?, device.array(&charges)?);
        let mut sums = device.zeros([cells])?;
        let ordered = deposit().compile(device)?;
        let time = best(|| {
            let _done = ordered.launch((&mut sums, &cell, &charge))?;
            Ok(())
        })?;
        say(&format!("{n} terms into {cells}, in order"), time, 1, 0.0);
        let relaxed = deposit_relaxed().compile(device)?;
        let time = best(|| {
            let _done = relaxed.launch((&mut sums, &cell, &charge))?;
            Ok(())
        })?;
        say(&format!("{n} terms into {cells}, in any order"), time, 1, 0.0);
    }
    Ok(())
}

/// One gradient of the wave, its states in the memory of the GPU, in that of the host, on disk.
fn tiers(device: &Device, n: usize) -> Result<()> {
    const STEPS: usize = 1000;
    let field: Vec<f32> = (0..n * n).map(number).collect();
    let speed: Vec<f32> = (0..n * n).map(|k| 0.2 + 0.1 * number(k)).collect();
    let mut u = device.array_with_shape([n, n], &field)?;
    let (mut prev, c, mut loss) =
        (device.zeros([n, n])?, device.array_with_shape([n, n], &speed)?, device.zeros([])?);
    let g = wave().grad(wave::loss).wrt(wave::c).compile(device)?;
    let plan = g.plan((&mut u, &mut prev, &c, STEPS, &mut loss))?;
    let (state, tape) = (plan.loops[0].state_bytes, plan.loops[0].tape_bytes);
    let room = |states: u64, tapes: u64| Bytes(plan.fixed_bytes + states * state + tapes * tape);
    let dir = std::env::temp_dir();
    let some = |host: u64, disk: u64| {
        let mut tiers = Tiers::new();
        if host > 0 {
            tiers = tiers.host_memory(host * state);
        }
        if disk > 0 { tiers.disk(&dir, disk * state) } else { tiers }
    };
    let mut bits: Option<Vec<u32>> = None;
    let bytes = |room: Bytes| Budget::Bytes(room.0);
    for (name, budget, tiers) in [
        ("every 25th state on the GPU", Budget::Periodic { period: 25 }, some(0, 0)),
        ("room for 1 state and 25 tapes, host", bytes(room(1, 25)), some(1000, 0)),
        ("room for 1 state and 25 tapes, alone", bytes(room(1, 25)), some(0, 0)),
        ("room for 1 state and 25 tapes, disk", bytes(room(1, 25)), some(0, 1000)),
        ("room for 32 states and 32 tapes, alone", bytes(room(32, 32)), some(0, 0)),
        ("room for 32 states and 32 tapes, host", bytes(room(32, 32)), some(1000, 0)),
        ("room for 1 state and 4 tapes, alone", bytes(room(1, 4)), some(0, 0)),
        ("room for 1 state and 4 tapes, host", bytes(room(1, 4)), some(1000, 0)),
    ] {
        let g = g.with_budget(budget).with_tiers(tiers);
        let first = Instant::now();
        let mut out = g.launch((&mut u, &mut prev, &c, STEPS, &mut loss))?;
        println!(
            "  the first launch takes {:.0} us per step",
            first.elapsed().as_secs_f64() * 1e6 / STEPS as f64
        );
        let time = best(|| Ok(g.launch_into(&mut out, (&mut u, &mut prev, &c, STEPS, &mut loss))?))?;
        say(&format!("wave {n} gradient, {name}"), time, STEPS, 0.0);
        println!("{}", g.plan((&mut u, &mut prev, &c, STEPS, &mut loss))?.explain());
        let found: Vec<u32> = out.get(wave::c)?.to_vec().iter().map(|x| x.to_bits()).collect();
        if *bits.get_or_insert_with(|| found.clone()) != found {
            return Err("the gradient has other bits".into());
        }
        g.release();
    }
    Ok(())
}

/// The wave and its gradient with more and less memory: what steps cost, and what stands between them.
fn profile(device: &Device, n: usize) -> Result<()> {
    const STEPS: usize = 512;
    let (mut u, mut prev) = (device.zeros([n, n])?, device.zeros([n, n])?);
    let (c, mut loss) = (device.zeros([n, n])?, device.zeros([])?);
    let primal = wave().compile(device)?;
    let time = best(|| {
        let _done = primal.launch((&mut u, &mut prev, &c, STEPS, &mut loss))?;
        Ok(())
    })?;
    say(&format!("wave {n} primal"), time, STEPS, 0.0);
    let g = wave().grad(wave::loss).wrt(wave::c).compile(device)?;
    for (name, budget) in [
        ("store-all", Budget::StoreAll),
        ("every 16th", Budget::Periodic { period: 16 }),
        ("every 32nd", Budget::Periodic { period: 32 }),
        ("every 64th", Budget::Periodic { period: 64 }),
    ] {
        let g = g.with_budget(budget);
        let mut out = g.launch((&mut u, &mut prev, &c, STEPS, &mut loss))?;
        let time = best(|| Ok(g.launch_into(&mut out, (&mut u, &mut prev, &c, STEPS, &mut loss))?))?;
        say(&format!("wave {n} gradient, {name}"), time, STEPS, 0.0);
    }
    Ok(())
}

fn main() -> Result<()> {
    println!("{}", ebbtide_cuda::describe()?);
    let shapes: &[(u32, u32)] = if std::env::args().any(|a| a == "--tune") {
        &[(512, 1), (512, 2), (768, 1), (1024, 1)]
    } else {
        &[(0, 0)]
    };
    for (threads, crowd) in shapes {
        let mut options = Options::new();
        if *threads > 0 {
            println!("{threads} threads per block, {crowd} blocks per multiprocessor");
            options = options.threads(*threads).crowd(*crowd);
        }
        let (device, counters) = options.build()?;
        if std::env::args().any(|a| a == "--profile") {
            let sizes: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
            for n in if sizes.is_empty() { &[512, 2048][..] } else { &sizes } {
                profile(&device, *n)?;
            }
        } else if std::env::args().any(|a| a == "--tiers") {
            tiers(&device, 2048)?;
        } else {
            run(&device)?;
        }
        println!(
            "  {} builds, {} launches, {} waits",
            counters.builds(),
            counters.launches(),
            counters.waits()
        );
    }
    Ok(())
}
