//! What exchanges cost: a wave in three dimensions on the ranks of a job against the same wave on as many threads of one process.
//!
//! `mpirun -n 2 --bind-to none target/release/examples/cost`, on a machine that nobody else uses. One thread computes on each rank;
//! rank 0, which runs the other variants, must not be bound to one core. All variants are run in turn, many times. It prints medians
//! and the least times, which other processes disturb less; the ratio is the median of the ratios within each turn. The floor is the
//! bytes of an exchange at the speed of a copy. The model is that of the guide (`docs/src/machines.md`): one reduction and one message
//! to each neighbour.

#[allow(dead_code)]
#[path = "../../../examples/survey.rs"]
mod survey;

use std::time::Instant;

use ebbtide::prelude::*;
use ebbtide_cpu::Options;
use ebbtide_grid::{Error, Grid, Part, Place3, Result, Team, Wire};
use ebbtide_mpi::Mpi;
use survey::advance;

/// Cells along each side of the volume.
const N: usize = 128;
/// Time steps of a launch.
const STEPS: usize = 20;
/// How often each variant is run.
const TURNS: usize = 21;

#[program]
fn waves(p: &mut Array3<f32>, q: &mut Array3<f32>, c: &Array3<f32>, at: &Place3, steps: usize) {
    for _t in 0..steps {
        exchange(p);
        advance(p, q, c, at);
        swap(p, q);
    }
}

#[program]
fn exchanges(p: &mut Array3<f32>, steps: usize) {
    for _t in 0..steps {
        exchange(p);
    }
}

/// The two programs on a CPU device with so many threads.
struct Bench {
    device: Device,
    waves: Compiled<waves>,
    exchanges: Compiled<exchanges>,
}

/// Seconds of a step and of an exchange.
#[derive(Clone, Copy)]
struct Seconds {
    step: f64,
    exchange: f64,
}

/// One turn of all variants.
struct Turn {
    /// On the ranks of the job, on as many threads, on as many parts of one process.
    ranks: Seconds,
    threads: Seconds,
    process: Seconds,
    /// What MPI alone takes for an exchange by the model, and the floor.
    model: f64,
    copy: f64,
}

impl Bench {
    fn on(threads: usize) -> Result<Bench> {
        let built = Options::new().threads(threads).build();
        let (device, _) = built.map_err(|error| Error::Part(format!("no CPU device: {error}")))?;
        let (waves, exchanges) = (waves().compile(&device)?, exchanges().compile(&device)?);
        Ok(Bench { device, waves, exchanges })
    }

    /// Runs both programs on the parts of a team; the slowest part counts.
    fn run(&self, team: Team) -> Result<Seconds> {
        let seconds = |part: &Part| -> Result<Seconds> {
            let c = part.fill(&self.device, |_| 0.3)?;
            let mut p = part.fill(&self.device, |[x, y, z]| ((x + 2 * y + 3 * z) as f32).sin())?;
            let (mut q, at) = (part.zeros(&self.device)?, part.place3()?);
            let _done = self.waves.launch((&mut p, &mut q, &c, &at, 2))?;
            part.barrier()?;
            let begun = Instant::now();
            let _done = self.waves.launch((&mut p, &mut q, &c, &at, STEPS))?;
            let step = slowest(part, begun)?;
            let begun = Instant::now();
            let _done = self.exchanges.launch((&mut p, STEPS))?;
            Ok(Seconds { step, exchange: slowest(part, begun)? })
        };
        Ok(team.run(seconds)?[0])
    }
}

/// Seconds of a step on the slowest part.
fn slowest(part: &Part, begun: Instant) -> Result<f64> {
    let own = begun.elapsed().as_nanos() as u64;
    let all = part.gather_bytes(&own.to_le_bytes())?;
    let words = all.iter().filter_map(|bytes| Some(u64::from_le_bytes(bytes.as_slice().try_into().ok()?)));
    Ok(words.max().unwrap_or(own) as f64 * 1e-9 / STEPS as f64)
}

/// Seconds of one reduction of three words, and of one message of these bytes to each neighbour: what MPI alone takes.
fn bare(wire: &mut dyn Wire, bytes: usize) -> Result<(f64, f64)> {
    const TIMES: usize = 200;
    let (rank, ranks) = (wire.rank(), wire.ranks());
    let neighbours: Vec<usize> =
        [rank.wrapping_sub(1), rank + 1].into_iter().filter(|r| *r < ranks).collect();
    let begun = Instant::now();
    for _ in 0..TIMES {
        wire.all_max(&mut [1, 2, 3]).map_err(Error::Wire)?;
    }
    let reduction = begun.elapsed().as_secs_f64() / TIMES as f64;
    let begun = Instant::now();
    for _ in 0..TIMES {
        let messages = neighbours.iter().map(|to| (*to, vec![1; bytes])).collect();
        wire.swap(messages, &neighbours).map_err(Error::Wire)?;
    }
    Ok((reduction, begun.elapsed().as_secs_f64() / TIMES as f64))
}

/// Seconds to copy so many bytes.
fn copy(bytes: usize) -> f64 {
    let from = vec![1u8; bytes];
    let mut to = vec![0u8; bytes];
    let begun = Instant::now();
    for _ in 0..100 {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
    }
    begun.elapsed().as_secs_f64() / 100.0
}

/// The median and the least.
fn summary(mut numbers: Vec<f64>) -> (f64, f64) {
    numbers.sort_by(f64::total_cmp);
    (numbers[numbers.len() / 2], numbers[0])
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mpi = Mpi::start()?;
    let (rank, ranks) = (mpi.rank(), mpi.ranks());
    if ranks < 2 {
        return Err("start at least two ranks: mpirun -n 2 cost".into());
    }
    let grid = |parts: usize| Grid::new(&[N, N, N])?.even(&[parts, 1, 1])?.halo(1);
    let (whole, parts) = (grid(1)?, grid(ranks)?);
    let one = Bench::on(1)?;
    let threads = if rank == 0 { Some(Bench::on(ranks)?) } else { None };
    let mut wire = mpi.wire();
    // One face: all that a rank sends to a neighbour, with three words that say what it is.
    let face = N * N * size_of::<f32>();
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let divided = one.run(mpi.team(&parts))?;
        let (reduction, message) = bare(&mut wire, face + 24)?;
        mpi.rest();
        let (mut undivided, mut local) = (divided, divided);
        if let Some(threads) = &threads {
            undivided = threads.run(Team::new(&whole))?;
            local = one.run(Team::new(&parts).computing(ranks))?;
        }
        mpi.rest();
        turns.push(Turn {
            ranks: divided,
            threads: undivided,
            process: local,
            model: reduction + message,
            copy: copy(face),
        });
    }
    if rank != 0 {
        return Ok(());
    }
    let bytes = 2 * (ranks - 1) * face;
    println!(
        "{N}³ cells of f32, {ranks} ranks of one thread, {TURNS} turns of {STEPS} steps; medians, and the least"
    );
    let micro = |what: String, f: &dyn Fn(&Turn) -> f64| {
        let (median, least) = summary(turns.iter().map(f).collect());
        println!("{what:35} {:9.1} µs {:9.1} µs", 1e6 * median, 1e6 * least);
        (median, least)
    };
    let (_, on_ranks) = micro(format!("a step on {ranks} ranks"), &|t| t.ranks.step);
    let (_, on_threads) = micro(format!("a step on {ranks} threads"), &|t| t.threads.step);
    micro(format!("a step on {ranks} parts of a process"), &|t| t.process.step);
    let (_, exchange) = micro("an exchange alone, ranks".to_string(), &|t| t.ranks.exchange);
    micro("an exchange alone, one process".to_string(), &|t| t.process.exchange);
    // A reduction, and a message each way.
    let (_, model) = micro("MPI alone, by the model".to_string(), &|t| t.model);
    let (copy, _) = micro("a message, copied".to_string(), &|t| t.copy);
    let ratio = |f: &dyn Fn(&Turn) -> f64| summary(turns.iter().map(f).collect()).0;
    let steps = ratio(&|t| t.ranks.step / t.threads.step);
    println!("ranks over threads {steps:.3}, of the least times {:.3}", on_ranks / on_threads);
    let exchanges = ratio(&|t| t.ranks.exchange / t.model);
    println!("exchange over model {exchanges:.3}, of the least times {:.3}", exchange / model);
    println!("floor: {bytes} bytes in all, {face} a message, copied in {:.1} µs", 1e6 * copy);
    Ok(())
}
