//! Ebbtide against hand-written C: the same workloads in one run, as ratios.
//!
//! `bench/run --primal [workload]`: each line is the best of several rounds in which both take turns, so that a
//! busy machine slows both.

mod gradients;
mod programs;
mod reference;

use std::error::Error;
use std::time::{Duration, Instant};

use ebbtide_cpu::{Cache, Options};
use ebbtide_ir::{Literal, Param, Program, Role, Type};
use ebbtide_runtime::{AnyArray, Arg, Compiled, Device};

use reference::{Reference, memory};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Workload {
    name: &'static str,
    program: Program,
    /// The extents that the reference is told; the shapes of the arrays in order.
    extents: [i64; 2],
    shapes: Vec<Vec<usize>>,
    steps: usize,
}

fn workloads() -> Result<Vec<Workload>> {
    let line = |n: usize| vec![vec![n], vec![n]];
    let (plane, wave_steps) = (vec![512, 512], 200);
    Ok(vec![
        Workload {
            name: "pointwise",
            program: programs::pointwise()?,
            extents: [100, 0],
            shapes: line(100),
            steps: 100_000,
        },
        Workload {
            name: "burgers",
            program: programs::burgers()?,
            extents: [10_000, 0],
            shapes: line(10_000),
            steps: 5_000,
        },
        Workload {
            name: "burgers",
            program: programs::burgers()?,
            extents: [1_000_000, 0],
            shapes: line(1_000_000),
            steps: 20,
        },
        Workload {
            name: "wave",
            program: programs::wave()?,
            extents: [512, 512],
            shapes: vec![plane.clone(), plane.clone(), plane, vec![wave_steps], vec![wave_steps, 512]],
            steps: wave_steps,
        },
        Workload {
            name: "rnn",
            program: programs::rnn()?,
            extents: [256, 0],
            shapes: vec![vec![256], vec![256], vec![256, 256], vec![256]],
            steps: 2_000,
        },
    ])
}

/// Small positive numbers, the same for both.
fn number(k: usize) -> f64 {
    ((k * 2_654_435_761) % 1000) as f64 / 100_000.0
}

fn fill(bytes: &mut [u8], ty: Type) {
    if ty == Type::F32 {
        let chunks = bytes.chunks_exact_mut(4).enumerate();
        chunks.for_each(|(k, c)| c.copy_from_slice(&(number(k) as f32).to_ne_bytes()));
    } else {
        let chunks = bytes.chunks_exact_mut(8).enumerate();
        chunks.for_each(|(k, c)| c.copy_from_slice(&number(k).to_ne_bytes()));
    }
}

fn arrays_of(program: &Program, device: &Device, shapes: &[Vec<usize>]) -> Result<Vec<AnyArray>> {
    let mut shapes = shapes.iter();
    let mut arrays = Vec::new();
    for param in &program.params {
        if let Param::Array(id) = param {
            let shape = shapes.next().ok_or("a shape is missing")?;
            arrays.push(AnyArray::zeros(device, program.array(*id).ty, shape)?);
        }
    }
    Ok(arrays)
}

fn launch(compiled: &Compiled, arrays: &mut [AnyArray], scalar: Option<Literal>) -> Result<()> {
    let program = compiled.program();
    let mut rest = arrays.iter_mut();
    let mut args = Vec::with_capacity(program.params.len());
    for param in &program.params {
        args.push(match param {
            Param::Scalar(_) => Arg::Scalar(scalar.ok_or("a scalar is missing")?),
            Param::Array(id) => {
                let array = rest.next().ok_or("an array is missing")?;
                match program.array(*id).role {
                    Role::Param(ebbtide_ir::Access::Read) => Arg::Read(array),
                    _ => Arg::Write(array),
                }
            }
        });
    }
    let _done = compiled.launch(args)?;
    Ok(())
}

fn timed(run: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed())
}

fn compare(workload: &Workload, reference: &Reference, threads: usize, cache: &Cache) -> Result<()> {
    let (device, _) = Options::new().threads(threads).cache(cache.clone()).build()?;
    let compiled = Compiled::new(&workload.program, &device)?;
    let mut ours = arrays_of(&workload.program, &device, &workload.shapes)?;
    let mut theirs: Vec<Vec<u64>> = ours.iter().map(|a| memory(a.bytes().len())).collect();
    let (mut best_ours, mut best_theirs) = (Duration::MAX, Duration::MAX);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1500) {
        for (a, b) in ours.iter_mut().zip(&mut theirs) {
            let ty = a.ty();
            fill(a.bytes_mut(), ty);
            let bytes = a.bytes().len();
            // SAFETY: `memory` made room for as many bytes behind the alignment.
            fill(unsafe { std::slice::from_raw_parts_mut(reference::aligned(b), bytes) }, ty);
        }
        let steps = workload.steps as i64;
        best_ours = best_ours.min(timed(|| launch(&compiled, &mut ours, Some(Literal::index(steps))))?);
        best_theirs = best_theirs.min(timed(|| {
            reference.run(workload.name, &mut theirs, workload.extents, steps, threads as i32)
        })?);
    }
    let per_step = |d: Duration| d.as_secs_f64() * 1e6 / workload.steps as f64;
    println!(
        "{:<10} {:>8} {threads} threads: {:>10.3} us per step, C {:>10.3}, ratio {:.2}",
        workload.name,
        workload.extents[0],
        per_step(best_ours),
        per_step(best_theirs),
        best_ours.as_secs_f64() / best_theirs.as_secs_f64()
    );
    Ok(())
}

fn costs(cache: &Cache) -> Result<()> {
    let (device, _) = Options::new().threads(1).cache(cache.clone()).build()?;
    let trivial = Compiled::new(&programs::trivial()?, &device)?;
    let mut arrays = arrays_of(trivial.program(), &device, &[vec![]])?;
    let mut best = Duration::MAX;
    for _ in 0..50 {
        best = best.min(timed(|| (0..1000).try_for_each(|_| launch(&trivial, &mut arrays, None)))?);
    }
    println!("trivial launch: {:.3} us", best.as_secs_f64() * 1e3);
    let passes = Compiled::new(&programs::passes()?, &device)?;
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let mut arrays = arrays_of(passes.program(), &device, &[vec![4], vec![4], vec![]])?;
        best = best.min(timed(|| launch(&passes, &mut arrays, Some(Literal::from(100_000i64))))?);
    }
    println!("pass of a device loop with two tiny tasks: {:.1} ns", best.as_secs_f64() * 1e4);
    Ok(())
}

fn compile_times() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (device, _) = Options::new().threads(1).cache(Cache::at(folder.path())).build()?;
    let program = programs::wave()?;
    let cold = timed(|| Compiled::new(&program, &device).map(drop).map_err(Into::into))?;
    let mut hit = Duration::MAX;
    for _ in 0..5 {
        hit = hit.min(timed(|| Compiled::new(&program, &device).map(drop).map_err(Into::into))?);
    }
    println!(
        "wave: cold compile {:.0} ms, cache hit {:.2} ms",
        cold.as_secs_f64() * 1e3,
        hit.as_secs_f64() * 1e3
    );
    Ok(())
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let what = words.first().map(String::as_str);
    if !matches!(what, Some("--primal" | "--gradient")) {
        return Err(
            "say what to run: bench/run --primal [workload | costs], or bench/run --gradient [workload]"
                .into(),
        );
    }
    if words.get(1).is_some_and(|word| word == "source") {
        let (device, _) = Options::new().build()?;
        for workload in workloads()?.iter().filter(|w| words.get(2).is_some_and(|word| word == w.name)) {
            println!("{}", Compiled::new(&workload.program, &device)?.source().unwrap_or_default());
        }
        return Ok(());
    }
    let wanted = |name: &str| words.get(1).is_none_or(|word| word == name);
    let folder = tempfile::tempdir()?;
    let cache = Cache::at(folder.path());
    let reference = Reference::build()?;
    if what == Some("--gradient") {
        return gradients::run(&reference, &cache, wanted);
    }
    for workload in workloads()?.iter().filter(|w| wanted(w.name)) {
        for threads in [1, 2] {
            compare(workload, &reference, threads, &cache)?;
        }
    }
    if wanted("costs") {
        costs(&cache)?;
        compile_times()?;
    }
    Ok(())
}
