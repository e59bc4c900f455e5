//! Parameter estimation: how do foxes and hares live, seen from a few noisy counts?
//!
//! The equations of Lotka and Volterra are solved by a method of Bogacki and Shampine, which chooses its steps by
//! itself: how many there will be is known only at the end. The gradient of the misfit goes back through all of
//! them, the rejected ones too, with an online schedule, in a few kibibytes. A quasi-Newton method finds the four
//! rates from it.
//!
//! ```text
//! cargo run --release --example predator
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const UNTIL: f64 = 24.0;
const COUNTS: usize = 60;
const TOLERANCE: f64 = 1e-6;

/// Hares multiply and are eaten.
#[func]
fn hares(x: f64, y: f64, birth: f64, eaten: f64) -> f64 {
    x * (birth - eaten * y)
}

/// Foxes starve and eat.
#[func]
fn foxes(x: f64, y: f64, death: f64, fed: f64) -> f64 {
    y * (fed * x - death)
}

#[derive(Arrays)]
struct Clock {
    time: Array0<f64>,
    /// The step to be tried next.
    step: Array0<f64>,
    /// The count that comes next.
    next: Array0<i32>,
    tried: Array0<i32>,
}

/// From count to count in steps as long as the tolerance allows; `loss` is half the sum of squared differences.
#[program]
fn fit(
    rates: &Array1<f64>,
    animals: &mut Array1<f64>,
    clock: &mut Clock,
    times: &Array1<f64>,
    counts: &Array2<f64>,
    seen: &mut Array2<f64>,
    loss: &mut Array0<f64>,
) {
    while clock.next[[]] < times.len() as i32 {
        let k = clock.next[[]] as usize;
        let left = times[k] - clock.time[[]];
        let h = clock.step[[]].min(left);
        let x = animals[0];
        let y = animals[1];
        let x1 = hares(x, y, rates[0], rates[1]);
        let y1 = foxes(x, y, rates[2], rates[3]);
        let x2 = hares(x + 0.5 * h * x1, y + 0.5 * h * y1, rates[0], rates[1]);
        let y2 = foxes(x + 0.5 * h * x1, y + 0.5 * h * y1, rates[2], rates[3]);
        let x3 = hares(x + 0.75 * h * x2, y + 0.75 * h * y2, rates[0], rates[1]);
        let y3 = foxes(x + 0.75 * h * x2, y + 0.75 * h * y2, rates[2], rates[3]);
        let nx = x + h * (2.0 * x1 + 3.0 * x2 + 4.0 * x3) / 9.0;
        let ny = y + h * (2.0 * y1 + 3.0 * y2 + 4.0 * y3) / 9.0;
        let x4 = hares(nx, ny, rates[0], rates[1]);
        let y4 = foxes(nx, ny, rates[2], rates[3]);
        let ex = h * (-5.0 * x1 / 72.0 + x2 / 12.0 + x3 / 9.0 - x4 / 8.0);
        let ey = h * (-5.0 * y1 / 72.0 + y2 / 12.0 + y3 / 9.0 - y4 / 8.0);
        let error = (ex * ex + ey * ey).sqrt() / TOLERANCE + 1e-12;
        clock.tried[[]] += 1;
        if error <= 1.0 {
            animals[0] = nx;
            animals[1] = ny;
            clock.time[[]] += h;
            if h == left {
                seen[[k, 0]] = nx;
                seen[[k, 1]] = ny;
                let dx = nx - counts[[k, 0]];
                let dy = ny - counts[[k, 1]];
                loss[[]] += 0.5 * (dx * dx + dy * dy);
                clock.next[[]] += 1;
            }
        }
        clock.step[[]] = h * (0.9 / error.cbrt()).clamp(0.2, 4.0);
    }
}

struct Field {
    device: Device,
    times: Array1<f64>,
    counts: Array2<f64>,
}

/// What one launch works on.
struct Work {
    rates: Array1<f64>,
    animals: Array1<f64>,
    clock: Clock,
    seen: Array2<f64>,
    loss: Array0<f64>,
}

impl Field {
    fn work(&self, rates: &[f64]) -> Result<Work, Failure> {
        let device = &self.device;
        Ok(Work {
            rates: device.array(rates)?,
            animals: device.array(&[10.0, 5.0])?,
            clock: Clock {
                time: device.scalar(0.0)?,
                step: device.scalar(0.1)?,
                next: device.scalar(0)?,
                tried: device.scalar(0)?,
            },
            seen: device.zeros([COUNTS, 2])?,
            loss: device.scalar(0.0)?,
        })
    }

    fn run(&self, plain: &Compiled<fit>, rates: &[f64]) -> Result<Work, Failure> {
        let mut w = self.work(rates)?;
        let _done = plain.launch((
            &w.rates,
            &mut w.animals,
            &mut w.clock,
            &self.times,
            &self.counts,
            &mut w.seen,
            &mut w.loss,
        ))?;
        Ok(w)
    }

    fn gradient(&self, g: &CompiledGrad<fit>, rates: &[f64]) -> Result<(f64, Vec<f64>), Failure> {
        let mut w = self.work(rates)?;
        let out = g.launch((
            &w.rates,
            &mut w.animals,
            &mut w.clock,
            &self.times,
            &self.counts,
            &mut w.seen,
            &mut w.loss,
        ))?;
        Ok((out.value(fit::loss)?.value(), out.get(fit::rates)?.to_vec()))
    }
}

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    let device = Device::best()?;
    let plain = fit().compile(&device)?;
    let g = fit().value_and_grad(fit::loss).wrt(fit::rates).memory(Bytes::kib(8)).compile(&device)?;

    // Counts of a world whose rates are known, and then forgotten.
    let truth = [1.1, 0.4, 0.4, 0.1];
    let times: Vec<f64> = (1..=COUNTS).map(|k| UNTIL * k as f64 / COUNTS as f64).collect();
    let mut field =
        Field { times: device.array(&times)?, counts: device.zeros([COUNTS, 2])?, device: device.clone() };
    let world = field.run(&plain, &truth)?;
    let noise = |k: usize| 0.5 * ((k * k) as f64 * 0.618).sin();
    let noisy: Vec<f64> = world.seen.as_slice().iter().enumerate().map(|(k, x)| x + noise(k)).collect();
    field.counts = device.array_with_shape([COUNTS, 2], &noisy)?;

    let mut w = field.work(&truth)?;
    let plan = g.plan((
        &w.rates,
        &mut w.animals,
        &mut w.clock,
        &field.times,
        &field.counts,
        &mut w.seen,
        &mut w.loss,
    ))?;
    say!("{}", plan.explain());

    let mut at = vec![1.0, 0.35, 0.45, 0.11];
    say!("iteration       misfit    birth    eaten   death     fed    steps tried");
    let found = descend(&field, &plain, &g, &mut at)?;
    say!("{:>9} {:>12} {}", "truth", "", row(&truth));

    let end = field.run(&plain, &at)?;
    let hares = |all: &[f64]| all.iter().step_by(2).copied().collect::<Vec<_>>();
    let (counted, fitted) = (hares(&noisy), hares(end.seen.as_slice()));
    show::curves("hares, counted (o) and with the rates found (.)", 14, &[('.', &fitted), ('o', &counted)]);

    say!();
    // Beside the minimum, where the slopes are not nearly zero.
    let beside = [1.12, 0.38, 0.41, 0.099];
    let (_, gradient) = field.gradient(&g, &beside)?;
    for (k, name) in ["birth", "eaten", "death", "fed"].iter().enumerate() {
        let misfit = |shift: f64| -> Result<f64, Failure> {
            let mut rates = beside;
            rates[k] += shift;
            Ok(field.run(&plain, &rates)?.loss.value())
        };
        let difference = (misfit(1e-9)? - misfit(-1e-9)?) / 2e-9;
        show::check(&format!("slope along {name}"), gradient[k], difference, 1e-5)?;
    }
    // The best rates fit the noisy counts at least as well as the true ones do.
    let of_truth = field.run(&plain, &truth)?.loss.value();
    say!("misfit {found:.5} with the rates found, {of_truth:.5} with the true ones");
    if found <= of_truth { Ok(()) } else { Err("the rates found are not the best ones".into()) }
}

fn row(rates: &[f64]) -> String {
    rates.iter().map(|r| format!("{r:>8.4}")).collect()
}

/// BFGS with a line search that halves; gives the misfit at the end.
fn descend(
    field: &Field,
    plain: &Compiled<fit>,
    g: &CompiledGrad<fit>,
    at: &mut [f64],
) -> Result<f64, Failure> {
    let n = at.len();
    let (mut value, mut slope) = field.gradient(g, at)?;
    // An estimate of the inverse of the Hessian.
    let mut inverse: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| if i == j { 1e-6 } else { 0.0 }).collect()).collect();
    let times = |m: &[Vec<f64>], v: &[f64]| -> Vec<f64> { m.iter().map(|row| dot(row, v)).collect() };
    for iteration in 0..=40 {
        if iteration % 5 == 0 {
            let tried = field.run(plain, at)?.clock.tried.value();
            say!("{iteration:>9} {value:>12.5} {} {tried:>14}", row(at));
        }
        let direction = times(&inverse, &slope);
        let mut length = 1.0;
        let (next, next_value, next_slope) = loop {
            let next: Vec<f64> = at.iter().zip(&direction).map(|(x, d)| x - length * d).collect();
            let (v, s) = field.gradient(g, &next)?;
            if v < value {
                break (next, v, s);
            }
            length /= 2.0;
            if length < 1e-10 {
                return Ok(value);
            }
        };
        let s: Vec<f64> = next.iter().zip(at.iter()).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next_slope.iter().zip(&slope).map(|(a, b)| a - b).collect();
        let sy = dot(&s, &y);
        if sy > 0.0 {
            if iteration == 0 {
                inverse.iter_mut().enumerate().for_each(|(i, row)| row[i] = sy / dot(&y, &y));
            }
            let hy = times(&inverse, &y);
            let factor = (1.0 + dot(&y, &hy) / sy) / sy;
            for i in 0..n {
                for j in 0..n {
                    inverse[i][j] += factor * s[i] * s[j] - (hy[i] * s[j] + s[i] * hy[j]) / sy;
                }
            }
        }
        at.copy_from_slice(&next);
        (value, slope) = (next_value, next_slope);
    }
    Ok(value)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
