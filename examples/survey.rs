//! A seismic survey in three dimensions on the parts of a grid: the gradient of a misfit by the speed of sound, in a memory
//! budget, the same for every cut as on one machine.
//!
//! `cargo run --release --example survey`. The same function runs on the ranks of an MPI job: `ebbtide_mpi::Mpi::team` in place
//! of `Team::new`.

use std::time::Instant;

use ebbtide::prelude::*;
use ebbtide_grid::{Grid, Part, Place3, Result, Team};

/// Waves from a source, heard at a row of receivers; both are given by global indices.
#[program]
fn survey(
    p: &mut Array3<f32>,
    q: &mut Array3<f32>,
    c: &Array3<f32>,
    wavelet: &Array1<f32>,
    heard: &Array2<f32>,
    at: &Place3,
    misfit: &mut Array0<f64>,
) {
    for t in 0..wavelet.len() {
        exchange(p);
        for (i, j, k) in par(
            at.x.first..at.x.first + at.x.count,
            at.y.first..at.y.first + at.y.count,
            at.z.first..at.z.first + at.z.count,
        ) {
            let around = p[[i - 1, j, k]]
                + p[[i + 1, j, k]]
                + p[[i, j - 1, k]]
                + p[[i, j + 1, k]]
                + p[[i, j, k - 1]]
                + p[[i, j, k + 1]];
            let mut next = 2.0 * p[[i, j, k]] - q[[i, j, k]]
                + c[[i, j, k]] * c[[i, j, k]] * (around - 6.0 * p[[i, j, k]]);
            let x = at.x.begin + i - at.x.first;
            let y = at.y.begin + j - at.y.first;
            let z = at.z.begin + k - at.z.first;
            if x == at.x.extent / 2 && y == at.y.extent / 2 && z == 2 {
                next += wavelet[t];
            }
            q[[i, j, k]] = next;
        }
        swap(p, q);
        for (i, j, k) in par(
            at.x.first..at.x.first + at.x.count,
            at.y.first..at.y.first + at.y.count,
            at.z.first..at.z.first + at.z.count,
        ) {
            let x = at.x.begin + i - at.x.first;
            let y = at.y.begin + j - at.y.first;
            let z = at.z.begin + k - at.z.first;
            if y == at.y.extent / 2 && z == 1 {
                let d = (p[[i, j, k]] - heard[[t, x]]) as f64;
                misfit[[]] += 0.5 * d * d;
            }
        }
    }
    all_sum(misfit);
}

const EXTENTS: [usize; 3] = [24, 20, 16];
const STEPS: usize = 40;

/// What a run gives: the misfit, its gradient, seconds of a launch without one.
struct Found {
    misfit: f64,
    gradient: Vec<f32>,
    seconds: f64,
}

fn speed([x, _, z]: [usize; 3]) -> f32 {
    0.35 + 0.008 * z as f32 + if x > 12 { 0.03 } else { 0.0 }
}

fn run(cut: &[usize], change: &(impl Fn([usize; 3]) -> f32 + Sync)) -> Result<Found> {
    let device = Device::best()?;
    let launch = survey().compile(&device)?;
    let gradient = survey().value_and_grad(survey::misfit).wrt(survey::c);
    let gradient = gradient.memory(Bytes::mib(4)).compile(&device)?;
    let grid = Grid::new(&EXTENTS)?.even(cut)?.halo(1)?;
    let work = |part: &Part| -> Result<Found> {
        let at = part.place3()?;
        let c = part.fill(&device, |place| speed(place) + change(place))?;
        let wavelet: Vec<f32> = (0..STEPS).map(|t| (-0.1 * (t as f32 - 12.0).powi(2)).exp()).collect();
        let wavelet = device.array(&wavelet)?;
        let heard = device.zeros([STEPS, EXTENTS[0]])?;
        let (mut p, mut q) = (part.zeros(&device)?, part.zeros(&device)?);
        let mut misfit = device.zeros([])?;
        let out = gradient.launch((&mut p, &mut q, &c, &wavelet, &heard, &at, &mut misfit))?;
        let value = out.value(survey::misfit)?.value();
        let gradient = part.gather(out.get(survey::c)?)?;
        let begun = Instant::now();
        let _done = launch.launch((&mut p, &mut q, &c, &wavelet, &heard, &at, &mut misfit))?;
        Ok(Found { misfit: value, gradient, seconds: begun.elapsed().as_secs_f64() })
    };
    Ok(Team::new(&grid).run(work)?.swap_remove(0))
}

/// The gradient of three cuts against that of one machine, and against differences.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let whole = run(&[1, 1, 1], &|_| 0.0)?;
    println!("misfit {:.6}, on one machine", whole.misfit);
    let largest = whole.gradient.iter().fold(0.0f32, |most, g| most.max(g.abs()));
    for cut in [[2, 1, 1], [2, 2, 1], [3, 2, 2]] {
        let parts = run(&cut, &|_| 0.0)?;
        let differences = parts.gradient.iter().zip(&whole.gradient).map(|(a, b)| (a - b).abs());
        let apart = differences.fold(0.0f32, f32::max) / largest;
        let bytes = halo_bytes(&cut);
        println!(
            "{cut:?} parts: misfit {:.6}, gradient within {apart:.1e} of its largest component; {:.2} times the time of one \
             part, {bytes} bytes an exchange",
            parts.misfit,
            parts.seconds / whole.seconds,
        );
        if apart > 1e-5 || (parts.misfit - whole.misfit).abs() > 1e-12 * whole.misfit {
            return Err(format!("{cut:?} parts give something else than one").into());
        }
    }
    // The slope along a direction, by differences.
    let direction = |[x, y, z]: [usize; 3]| ((x + 2 * y + 3 * z) as f32 * 0.7).sin();
    let h = 1e-3;
    let up = run(&[2, 2, 1], &|at| h * direction(at))?.misfit;
    let down = run(&[2, 2, 1], &|at| -h * direction(at))?.misfit;
    let difference = (up - down) / (2.0 * f64::from(h));
    let mut slope = 0.0;
    for (k, g) in whole.gradient.iter().enumerate() {
        let (x, rest) = (k / (EXTENTS[1] * EXTENTS[2]), k % (EXTENTS[1] * EXTENTS[2]));
        slope += f64::from(*g) * f64::from(direction([x, rest / EXTENTS[2], rest % EXTENTS[2]]));
    }
    println!("slope {slope:.6}, by differences {difference:.6}");
    if (slope - difference).abs() > 1e-2 * slope.abs() {
        return Err("the gradient is not the slope".into());
    }
    Ok(())
}

/// Bytes that all parts together send in an exchange.
fn halo_bytes(cut: &[usize; 3]) -> usize {
    let faces = |d: usize| 2 * (cut[d] - 1) * EXTENTS.iter().product::<usize>() / EXTENTS[d];
    (0..3).map(faces).sum::<usize>() * size_of::<f32>()
}
