//! `fft` next to FFTW on CPUs; on a GPU alone: `bench/peers/fourier_jax.py` times cuFFT there.
//!
//! `cargo run --release -p ebbtide-bench --bin fourier -- cuda|THREADS [--quick] [--only ROWSxLENGTH] [--source]`
//!
//! Times are the best of many short runs that take turns. On one thread it is the time on the processor, so that other
//! processes disturb less. FFTW transforms complex numbers out of place, on one core, with plans that are made before; its
//! libraries are opened when the bench runs. Ours is a whole launch, twiddles included, and on a GPU also a transform of a loop
//! inside one launch.

use std::time::{Duration, Instant};

use ebbtide::library::fft;
use ebbtide::prelude::*;

#[path = "fourier/fftw.rs"]
mod fftw;
use fftw::{Clock, Fftw, Planning};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[program]
fn one<T: Float>(re: &mut Array1<T>, im: &mut Array1<T>, times: usize) {
    for _t in 0..times {
        fft(re, im);
    }
}

#[program]
fn many<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>, times: usize) {
    for _t in 0..times {
        fft(re, im);
    }
}

/// The best time of each of several runs that take turns.
fn best(
    clock: &Clock,
    mut runs: Vec<Box<dyn FnMut() -> Result<()> + '_>>,
    at_least: Duration,
) -> Result<Vec<f64>> {
    let mut best = vec![f64::MAX; runs.len()];
    let begun = Instant::now();
    for round in 0.. {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = clock.seconds();
            run()?;
            *best = best.min(clock.seconds() - start);
        }
        if round > 4 && begun.elapsed() > at_least {
            break;
        }
    }
    Ok(best)
}

fn number(k: usize) -> f64 {
    ((k.wrapping_mul(2_654_435_761) >> 7) % 2048) as f64 / 1024.0 - 1.0
}

/// What all measurements share.
struct Bench {
    device: Device,
    clock: Clock,
    time: Duration,
    /// FFTW is the peer on one thread of the CPU alone.
    peer: bool,
    /// On a GPU: the number of transforms in a launch whose launch is left out.
    inside: Option<usize>,
}

macro_rules! compare {
    ($bench:expr, $ty:ty, $program:ident, $shape:expr, $fftw:expr) => {{
        let bench: &Bench = $bench;
        let (device, shape) = (&bench.device, $shape);
        let n = shape[shape.len() - 1];
        let count: usize = shape.iter().product();
        let compiled = $program::<$ty>().compile(device)?;
        let given: Vec<$ty> = (0..2 * count).map(|k| number(k) as $ty).collect();
        let mut re = device.array_with_shape(shape, &given[..count])?;
        let mut im = device.array_with_shape(shape, &given[count..])?;
        let fftw: Option<&Fftw<$ty>> = $fftw.filter(|_| bench.peer);
        let mut plans = Vec::new();
        if let Some(fftw) = fftw {
            for planning in [Planning::Estimate, Planning::Measure] {
                plans.push(fftw.plan(n, count / n, planning)?);
            }
        }
        let _done = compiled.launch((&mut re, &mut im, 1))?;
        for plan in &mut plans {
            let worst = plan.difference(&given, &re.to_vec(), &im.to_vec())?;
            let bound = <$ty>::EPSILON as f64 * 4.0 * f64::from(n.ilog2() + 1);
            if worst > bound {
                return Err(format!("the transforms of {shape:?} differ by {worst:e}").into());
            }
        }
        // Zeros stay zeros however often they are transformed.
        re.copy_from_slice(&vec![0.0; count])?;
        im.copy_from_slice(&vec![0.0; count])?;
        let mut launch = |times: usize| -> Result<()> {
            let _done = compiled.launch((&mut re, &mut im, times))?;
            Ok(())
        };
        if let Some(inside) = bench.inside {
            let mut times = [0.0; 3];
            for (time, count) in times.iter_mut().zip([1, inside, 2 * inside]) {
                *time = best(&bench.clock, vec![Box::new(|| launch(count))], bench.time / 3)?[0];
            }
            let each = (times[2] - times[1]) / inside as f64;
            println!(
                "{} {shape:?}: a launch {:>9.1} us, in a loop {:>9.1} us",
                stringify!($ty),
                times[0] * 1e6,
                each * 1e6
            );
        } else {
            let mut runs: Vec<Box<dyn FnMut() -> Result<()> + '_>> = vec![Box::new(|| launch(1))];
            for plan in &mut plans {
                plan.clear();
                runs.push(Box::new(|| {
                    plan.execute();
                    Ok(())
                }));
            }
            let times = best(&bench.clock, runs, bench.time)?;
            print!("{} {shape:?}: {:>9.1} us", stringify!($ty), times[0] * 1e6);
            for (name, time) in ["estimated", "measured"].iter().zip(&times[1..]) {
                print!(", FFTW {name} {:>9.1} us: {:>5.2} x", time * 1e6, times[0] / time);
            }
            println!();
        }
    }};
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|w| w == word);
    let only = words.iter().skip_while(|word| *word != "--only").nth(1);
    let wanted = |rows: usize, n: usize| only.is_none_or(|only| *only == format!("{rows}x{n}"));
    let threads = words.first().and_then(|word| word.parse::<usize>().ok());
    let time = Duration::from_millis(if has("--quick") { 200 } else { 2000 });
    let (device, threads) = match (has("cuda"), threads) {
        (true, _) => {
            println!("{}", ebbtide_cuda::describe()?);
            (ebbtide_cuda::Options::new().build()?.0, None)
        }
        (false, Some(threads)) => {
            println!("{threads} threads of the CPU");
            (ebbtide_cpu::Options::new().threads(threads).build()?.0, Some(threads))
        }
        (false, None) => return Err("say `cuda` or a number of threads".into()),
    };
    if has("--source") {
        println!("{}", one::<f64>().compile(&device)?.source().unwrap_or_default());
        return Ok(());
    }
    let single = threads == Some(1);
    let bench = Bench {
        device,
        clock: Clock::new(single),
        time,
        peer: single,
        inside: threads.is_none().then_some(20),
    };
    let (double, float) = (fftw::open_double(), fftw::open_single());
    if single && (double.is_none() || float.is_none()) {
        println!("FFTW not found");
    }
    for n in [1 << 10, 1 << 16, 1 << 20].into_iter().filter(|n| wanted(1, *n)) {
        compare!(&bench, f64, one, [n], double.as_ref());
        compare!(&bench, f32, one, [n], float.as_ref());
    }
    if wanted(64, 1 << 12) {
        compare!(&bench, f64, many, [64, 1 << 12], double.as_ref());
        compare!(&bench, f32, many, [64, 1 << 12], float.as_ref());
    }
    Ok(())
}
