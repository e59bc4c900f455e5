//! A seismic survey in three dimensions on the parts of a grid: the gradient of a misfit by the speed of sound, in a memory
//! budget, the same for every cut as on one machine.
//!
//! `cargo run --release --example survey`. The same functions run on the ranks of an MPI job: `crates/mpi/examples/survey.rs`.

use std::path::Path;
use std::time::Instant;

use ebbtide::prelude::*;
use ebbtide_grid::{Grid, Part, Place3, Result, Team};

/// One time step of waves in the cells that a part owns, from the pressure `p` now and `q` before; `q` is then the next one.
#[program]
pub fn advance(p: &Array3<f32>, q: &mut Array3<f32>, c: &Array3<f32>, at: &Place3) {
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
        q[[i, j, k]] =
            2.0 * p[[i, j, k]] - q[[i, j, k]] + c[[i, j, k]] * c[[i, j, k]] * (around - 6.0 * p[[i, j, k]]);
    }
}

/// Waves from a source, heard at a row of receivers; both are given by global indices.
#[program]
pub fn survey(
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
        advance(p, q, c, at);
        swap(p, q);
        for (i, j, k) in par(
            at.x.first..at.x.first + at.x.count,
            at.y.first..at.y.first + at.y.count,
            at.z.first..at.z.first + at.z.count,
        ) {
            let x = at.x.begin + i - at.x.first;
            let y = at.y.begin + j - at.y.first;
            let z = at.z.begin + k - at.z.first;
            if x == at.x.extent / 2 && y == at.y.extent / 2 && z == 2 {
                p[[i, j, k]] += wavelet[t];
            }
            if y == at.y.extent / 2 && z == 1 {
                let d = (p[[i, j, k]] - heard[[t, x]]) as f64;
                misfit[[]] += 0.5 * d * d;
            }
        }
    }
    all_sum(misfit);
}

/// Cells along each dimension.
pub const EXTENTS: [usize; 3] = [24, 20, 16];
const STEPS: usize = 40;

/// The grid of the survey, cut into so many parts along each dimension.
pub fn grid(cut: [usize; 3]) -> Result<Grid> {
    Grid::new(&EXTENTS)?.even(&cut)?.halo(1)
}

fn speed([x, _, z]: [usize; 3]) -> f32 {
    0.35 + 0.008 * z as f32 + if x > 12 { 0.03 } else { 0.0 }
}

/// What a run gives.
pub struct Found {
    /// The misfit.
    pub misfit: f64,
    /// Its gradient by the speed of sound in every cell.
    pub gradient: Vec<f32>,
    /// How long a launch without the gradient took.
    seconds: f64,
}

impl Found {
    /// How far the gradient is from another one, relative to its largest component.
    pub fn apart(&self, other: &Found) -> f32 {
        let largest = other.gradient.iter().fold(0.0f32, |most, g| most.max(g.abs()));
        let differences = self.gradient.iter().zip(&other.gradient).map(|(a, b)| (a - b).abs());
        differences.fold(0.0f32, f32::max) / largest
    }

    /// Do both have the same misfit and gradient, up to the order of sums?
    pub fn agrees_with(&self, other: &Found) -> bool {
        self.apart(other) <= 1e-5 && (self.misfit - other.misfit).abs() <= 1e-12 * other.misfit
    }
}

/// The compiled survey.
pub struct Survey {
    device: Device,
    launch: Compiled<survey>,
    gradient: CompiledGrad<survey>,
}

impl Survey {
    /// For the best device.
    pub fn new() -> Result<Survey> {
        let device = Device::best()?;
        let gradient = survey().value_and_grad(survey::misfit).wrt(survey::c);
        let gradient = gradient.memory(Bytes::mib(4)).compile(&device)?;
        Ok(Survey { launch: survey().compile(&device)?, gradient, device })
    }

    /// The same survey, whose launches `cancel` stops.
    pub fn cancel_with(self, cancel: &Cancel) -> Survey {
        Survey { gradient: self.gradient.cancel_with(cancel), ..self }
    }

    /// Runs one part, with a change of the speed of sound; where there is a directory, it keeps the run durable there.
    pub fn run(
        &self,
        part: &Part,
        change: impl Fn([usize; 3]) -> f32,
        durable: Option<&Path>,
    ) -> Result<Found> {
        let (device, at) = (&self.device, part.place3()?);
        let c = part.fill(device, |place| speed(place) + change(place))?;
        let wavelet: Vec<f32> = (0..STEPS).map(|t| (-0.1 * (t as f32 - 12.0).powi(2)).exp()).collect();
        let wavelet = device.array(&wavelet)?;
        let heard = device.zeros([STEPS, EXTENTS[0]])?;
        let (mut p, mut q) = (part.zeros(device)?, part.zeros(device)?);
        let mut misfit = device.zeros([])?;
        let args = (&p, &q, &c, &wavelet, &heard, &at, &misfit);
        let out = match durable {
            Some(dir) => self.gradient.launch_durable(dir, args)?,
            None => self.gradient.launch(args)?,
        };
        let value = out.value(survey::misfit)?.value();
        let gradient = part.gather(out.get(survey::c)?)?;
        let begun = Instant::now();
        let _done = self.launch.launch((&mut p, &mut q, &c, &wavelet, &heard, &at, &mut misfit))?;
        Ok(Found { misfit: value, gradient, seconds: begun.elapsed().as_secs_f64() })
    }

    /// All parts in this process.
    pub fn run_here(&self, cut: [usize; 3], change: impl Fn([usize; 3]) -> f32 + Sync) -> Result<Found> {
        Ok(Team::new(&grid(cut)?).run(|part| self.run(part, &change, None))?.swap_remove(0))
    }
}

/// The gradient of three cuts against that of one machine, and against differences.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let survey = Survey::new()?;
    let whole = survey.run_here([1, 1, 1], |_| 0.0)?;
    println!("misfit {:.6}, on one machine", whole.misfit);
    for cut in [[2, 1, 1], [2, 2, 1], [3, 2, 2]] {
        let parts = survey.run_here(cut, |_| 0.0)?;
        println!(
            "{cut:?} parts: misfit {:.6}, gradient within {:.1e} of its largest component; {:.2} times the time of one \
             part, {} bytes an exchange",
            parts.misfit,
            parts.apart(&whole),
            parts.seconds / whole.seconds,
            halo_bytes(&cut),
        );
        if !parts.agrees_with(&whole) {
            return Err(format!("{cut:?} parts give something else than one").into());
        }
    }
    // The slope along a direction, by differences.
    let direction = |[x, y, z]: [usize; 3]| ((x + 2 * y + 3 * z) as f32 * 0.7).sin();
    let h = 1e-3;
    let up = survey.run_here([2, 2, 1], |at| h * direction(at))?.misfit;
    let down = survey.run_here([2, 2, 1], |at| -h * direction(at))?.misfit;
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
