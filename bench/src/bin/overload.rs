//! Two threads of ours next to one on a machine that is busy with something else: twice as many threads that compute as there
//! are cores. Medians of the time on the wall of a step, for steps of about 1 ms and of about 10 µs.
//!
//! `cargo run --release -p ebbtide-bench --bin overload`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ebbtide::prelude::*;
use ebbtide_cpu::{Optimize, Options};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Each step needs what its neighbours have: threads meet after every one.
#[program]
fn smooth(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let (left, right) = (u[(i + n - 1) % n], u[(i + 1) % n]);
            next[i] = 0.5 * u[i] + 0.25 * (left + right) + 1e-3 * u[i].sin();
        }
        swap(u, next);
    }
}

/// One device, its program and its arrays.
struct Runner {
    program: Compiled<smooth>,
    u: Array1<f64>,
    next: Array1<f64>,
}

impl Runner {
    fn new(threads: usize, n: usize) -> Result<Runner> {
        let (device, _) = Options::new().threads(threads).optimize(Optimize::Always).build()?;
        let start: Vec<f64> = (0..n).map(|i| (i as f64 * 0.01).sin()).collect();
        Ok(Runner { program: smooth().compile(&device)?, u: device.array(&start)?, next: device.zeros([n])? })
    }

    /// Microseconds of a step, on the wall.
    fn step(&mut self, steps: usize) -> Result<f64> {
        let at = Instant::now();
        let _done = self.program.launch((&mut self.u, &mut self.next, steps))?;
        Ok(at.elapsed().as_secs_f64() * 1e6 / steps as f64)
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let cores = std::thread::available_parallelism()?.get();
    for wanted in [1000.0, 10.0] {
        let steps = (100_000.0 / wanted) as usize;
        // Of this many elements a step of one thread takes that long.
        let mut n = 256;
        while n < 1 << 24 && Runner::new(1, n)?.step(steps)? < wanted {
            n += n / 2;
        }
        let mut runners = [Runner::new(1, n)?, Runner::new(2, n)?];
        for busy in [false, true] {
            let stop = Arc::new(AtomicBool::new(!busy));
            for _other in 0..2 * cores {
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {});
            }
            let mut times = [Vec::new(), Vec::new()];
            for _round in 0..15 {
                for (runner, times) in runners.iter_mut().zip(&mut times) {
                    times.push(runner.step(steps)?);
                }
            }
            stop.store(true, Ordering::Relaxed);
            let [one, two] = times.map(median);
            let others = if busy { 2 * cores } else { 0 };
            println!(
                "{n} elements, {others} busy threads: one thread {one:.1} us a step, two {two:.1}: {:.2}",
                two / one
            );
        }
    }
    Ok(())
}
