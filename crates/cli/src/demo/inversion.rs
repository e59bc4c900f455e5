//! The misfit over all shots and its gradient, under a memory budget.

use ebbtide::prelude::*;
use ebbtide_grid::{Shots, Wire};

use super::data::{Records, add_noise};
use super::earth::{Earth, Grid};
use super::physics::{misfit, shot};
use crate::Failure;

/// Where the data come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Data {
    /// The grid on which they are computed, if it is another one.
    pub grid: Option<Grid>,
    /// The standard deviation of noise, as a part of the root mean square of a shot.
    pub noise: f64,
}

/// What one evaluation of all shots found out.
pub struct Evaluation {
    pub value: f64,
    pub gradient: Vec<f64>,
}

/// What the gradient runs used, measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// The most bytes beyond the caller's arrays.
    pub peak_bytes: u64,
    /// Runs of each time step, per run of the loop.
    pub recompute_factor: f64,
}

/// The problem on a device: arrays, what was heard, the compiled gradient.
pub struct Inversion {
    device: Device,
    grid: Grid,
    steps: usize,
    ratio: f32,
    x: Array2<f32>,
    rock: Array2<f32>,
    keep: Array2<f32>,
    wavelet: Array1<f32>,
    loss: Array0<f64>,
    /// Where each shot is fired, and what was heard of it.
    shots: Vec<(usize, Array2<f32>)>,
    start: Vec<f32>,
    reach: Vec<f32>,
    plain: Compiled<misfit>,
    gradient: CompiledGrad<misfit>,
    found: Option<Gradients>,
    used: Used,
}

impl Inversion {
    /// Puts the ground on the device and compiles; nothing is fired yet.
    pub fn prepare(
        device: &Device,
        grid: Grid,
        earth: &Earth,
        sources: usize,
        budget: u64,
    ) -> Result<Inversion, Failure> {
        let shape = [grid.rows, grid.columns];
        let steps = earth.wavelet.len();
        let silence = |column| Ok((column, device.zeros([steps, grid.columns])?));
        let gradient = misfit()
            .value_and_grad(misfit::loss)
            .wrt(misfit::x)
            .memory(Bytes::bytes(budget))
            .compile(device)?;
        Ok(Inversion {
            device: device.clone(),
            grid,
            steps,
            ratio: earth.ratio,
            x: device.array_with_shape(shape, &earth.truth)?,
            rock: device.array_with_shape(shape, &earth.rock)?,
            keep: device.array_with_shape(shape, &earth.keep)?,
            wavelet: device.array(&earth.wavelet)?,
            loss: device.scalar(0.0)?,
            shots: grid.sources(sources).into_iter().map(silence).collect::<ebbtide::Result<_>>()?,
            start: earth.start.clone(),
            reach: earth.reach.clone(),
            plain: misfit().compile(device)?,
            gradient,
            found: None,
            used: Used::default(),
        })
    }

    /// Fires every shot over the true ground as `data` says, and keeps what is heard.
    pub fn fire(&mut self, earth: &Earth, data: Data) -> Result<(), Failure> {
        match data.grid {
            None => self.fire_here(earth)?,
            Some(other) => self.fire_elsewhere(other)?,
        }
        if data.noise > 0.0 {
            for (k, (_, heard)) in self.shots.iter_mut().enumerate() {
                add_noise(heard.as_mut_slice(), data.noise, k as u64 + 1);
            }
        }
        Ok(())
    }

    /// On a grid of its own, and back to the receivers and times of this one.
    fn fire_elsewhere(&mut self, grid: Grid) -> Result<(), Failure> {
        let seconds = self.steps as f64 * self.grid.time_step();
        let steps = (seconds / grid.time_step()).ceil() as usize + 1;
        let earth = Earth::new(grid, steps);
        let mut other = Inversion::prepare(&self.device, grid, &earth, self.shots.len(), u64::MAX)?;
        other.fire_here(&earth)?;
        let (faster, closer) = (self.grid.time_step() / grid.time_step(), self.grid.cell() / grid.cell());
        let place = |j: usize| (j as f64 + 0.5 - self.grid.edge() as f64) * closer + grid.edge() as f64 - 0.5;
        for ((_, heard), (_, there)) in self.shots.iter_mut().zip(&other.shots) {
            let records = Records { values: there.to_vec(), columns: grid.columns };
            let columns = self.grid.columns;
            for (k, value) in heard.iter_mut().enumerate() {
                // The record of step t is the field at the end of that step.
                let time = (k / columns + 1) as f64 * faster - 1.0;
                *value = records.between(time, place(k % columns));
            }
        }
        Ok(())
    }

    /// What the receivers of one shot heard, and what they would hear at a point.
    pub fn gather(&mut self, k: usize, point: &[f64]) -> Result<(usize, Vec<f32>, Vec<f32>), Failure> {
        self.set(point)?;
        let fire = shot().compile(&self.device)?;
        let mut model = self.device.zeros([self.steps, self.grid.columns])?;
        let (column, heard) = &self.shots[k];
        let (x, rock, keep, wavelet) = (&self.x, &self.rock, &self.keep, &self.wavelet);
        let row = self.grid.row();
        let _done = fire.launch((x, rock, keep, self.ratio, wavelet, row, *column, &mut model))?;
        Ok((*column, heard.to_vec(), model.to_vec()))
    }

    /// Fires every shot over the true ground on this grid.
    fn fire_here(&mut self, earth: &Earth) -> Result<(), Failure> {
        self.x.copy_from_slice(&earth.truth)?;
        let fire = shot().compile(&self.device)?;
        let (x, rock, keep, wavelet) = (&self.x, &self.rock, &self.keep, &self.wavelet);
        for (column, heard) in &mut self.shots {
            let args = (x, rock, keep, self.ratio, wavelet, self.grid.row(), *column, heard);
            let _done = fire.launch(args)?;
        }
        Ok(())
    }

    /// What the gradient of a shot will do; an error names the least budget that works.
    pub fn plan(&self) -> ebbtide::Result<Plan> {
        let (column, heard) = &self.shots[0];
        let row = self.grid.row();
        let (x, rock, keep, wavelet) = (&self.x, &self.rock, &self.keep, &self.wavelet);
        let args = (x, rock, keep, self.ratio, wavelet, row, *column, heard, &self.loss);
        self.gradient.plan(args)
    }

    pub fn used(&self) -> Used {
        self.used
    }

    /// The misfit and its gradient at a point, shot by shot, each on one of the ranks; `heed` is told after each of this one.
    pub fn evaluate(
        &mut self,
        point: &[f64],
        ranks: &mut dyn Wire,
        heed: impl Fn(usize, Used),
    ) -> Result<Evaluation, Failure> {
        let (shots, mut failed) = (self.shots.len(), None);
        let sum = Shots::over(ranks).sum(shots, 1 + point.len(), |k| {
            let mut one = Evaluation { value: 0.0, gradient: vec![0.0; point.len()] };
            if let Err(failure) = self.add_shot(k, point, &mut one) {
                let message = format!("{failure:?}");
                failed = Some(failure);
                return Err(ebbtide_grid::Error::Part(message));
            }
            heed(k + 1, self.used);
            one.gradient.insert(0, one.value);
            Ok(one.gradient)
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        let mut gradient = sum?;
        let value = gradient.remove(0);
        Ok(Evaluation { value, gradient })
    }

    /// Adds the misfit of one shot and its gradient.
    fn add_shot(&mut self, k: usize, point: &[f64], sum: &mut Evaluation) -> Result<(), Failure> {
        self.set(point)?;
        let (column, heard) = &self.shots[k];
        let row = self.grid.row();
        let (x, rock, keep, wavelet) = (&self.x, &self.rock, &self.keep, &self.wavelet);
        let args = (x, rock, keep, self.ratio, wavelet, row, *column, heard, &self.loss);
        let meter = self.device.meter();
        meter.reset_peak();
        let found = match self.found.take() {
            None => self.gradient.launch(args)?,
            Some(mut found) => {
                self.gradient.launch_into(&mut found, args)?;
                found
            }
        };
        // What is live now, the derivative included, is the caller's, but for what the gradient keeps for next time.
        let used = meter.peak() - meter.live() + self.gradient.held_bytes();
        self.used.peak_bytes = self.used.peak_bytes.max(used);
        let ran = found.ran();
        self.used.recompute_factor = (ran.advanced + ran.recorded) as f64 / self.steps as f64;
        sum.value += found.value(misfit::loss)?.value();
        let gradient = found.get(misfit::x)?.as_slice();
        let scaled = gradient.iter().zip(&self.reach).map(|(g, reach)| f64::from(*g) * f64::from(*reach));
        sum.gradient.iter_mut().zip(scaled).for_each(|(sum, g)| *sum += g);
        self.found = Some(found);
        Ok(())
    }

    /// The unknowns at a point of the optimiser: it moves from the start, by strides that grow with depth.
    pub fn unknowns(&self, point: &[f64]) -> Vec<f32> {
        let moved = point.iter().zip(&self.reach).map(|(p, reach)| p * f64::from(*reach));
        moved.zip(&self.start).map(|(moved, start)| (f64::from(*start) + moved) as f32).collect()
    }

    fn set(&mut self, point: &[f64]) -> ebbtide::Result<()> {
        let unknowns = self.unknowns(point);
        self.x.copy_from_slice(&unknowns)
    }

    /// The misfit of one shot alone, without a gradient.
    fn shot_misfit(&mut self, k: usize, point: &[f64]) -> Result<f64, Failure> {
        self.set(point)?;
        self.loss.fill(0.0)?;
        let (column, heard) = &self.shots[k];
        let row = self.grid.row();
        let (x, rock, keep, wavelet) = (&self.x, &self.rock, &self.keep, &self.wavelet);
        let args = (x, rock, keep, self.ratio, wavelet, row, *column, heard, &mut self.loss);
        let _done = self.plain.launch(args)?;
        let value = self.loss.value();
        self.loss.fill(0.0)?;
        Ok(value)
    }

    /// How far the slope of the misfit along a direction is from what the gradient says, relative.
    ///
    /// The fields are `f32`: short differences drown in rounding, long ones in curvature. The best of three lengths
    /// is reported.
    pub fn check_gradient(&mut self, point: &[f64]) -> Result<f64, Failure> {
        let middle = self.shots.len() / 2;
        let mut here = Evaluation { value: 0.0, gradient: vec![0.0; point.len()] };
        self.add_shot(middle, point, &mut here)?;
        let most = here.gradient.iter().fold(0.0_f64, |most, g| most.max(g.abs())).max(f64::MIN_POSITIVE);
        // Along the gradient, bent by a wave, so that no symmetry flatters it.
        let direction: Vec<f64> = here
            .gradient
            .iter()
            .enumerate()
            .map(|(k, g)| g / most * (1.0 + 0.5 * (0.37 * k as f64).sin()))
            .collect();
        let expected: f64 = here.gradient.iter().zip(&direction).map(|(g, d)| g * d).sum();
        let mut best = f64::INFINITY;
        for length in [3e-2, 1e-2, 3e-3] {
            let mut at = |factor: f64| {
                let moved: Vec<f64> = point.iter().zip(&direction).map(|(x, d)| x + factor * d).collect();
                self.shot_misfit(middle, &moved)
            };
            let slope = (at(length)? - at(-length)?) / (2.0 * length);
            best = best.min((slope - expected).abs() / expected.abs().max(f64::MIN_POSITIVE));
        }
        Ok(best)
    }
}
