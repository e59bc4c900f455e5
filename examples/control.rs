//! Optimal control: which force makes a wave end as a given one?
//!
//! A viscous Burgers flow on a ring is pushed by a force that may change eight times. Gradient descent finds the
//! force that brings the flow to a target in the end and is as gentle as can be. Each gradient goes back through
//! 4000 steps in a thirtieth of the memory that keeping all of them would take.
//!
//! ```text
//! cargo run --release --example control
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const CELLS: usize = 72;
const STEPS: usize = 4_000;
const PERIODS: usize = 8;
const DT: f64 = 0.0008;
const GENTLE: f64 = 1e-4;

/// Burgers on a ring of circumference 2π under a force that is constant over each of its rows' time.
#[program]
fn driven(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    force: &Array2<f64>,
    target: &Array1<f64>,
    steps: usize,
    dt: f64,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    let dx = 2.0 * std::f64::consts::PI / n as f64;
    let nu = 0.05;
    let hold = steps / force.dim(0);
    for t in 0..steps {
        for i in par(0..n) {
            let l = u[(i + n - 1) % n];
            let r = u[(i + 1) % n];
            let flow = u[i] * (r - l) / (2.0 * dx);
            next[i] = u[i] + dt * (nu * (l - 2.0 * u[i] + r) / (dx * dx) - flow + force[[t / hold, i]]);
        }
        swap(u, next);
    }
    for i in par(0..n) {
        let d = u[i] - target[i];
        loss[[]] += 0.5 * dx * d * d;
    }
    for (k, i) in par(0..force.dim(0), 0..n) {
        loss[[]] += 0.5 * GENTLE * dx * force[[k, i]] * force[[k, i]];
    }
}

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    let device = Device::best()?;
    let place = |i: usize| 2.0 * std::f64::consts::PI * i as f64 / CELLS as f64;
    let start: Vec<f64> = (0..CELLS).map(|i| place(i).sin()).collect();
    let goal: Vec<f64> = (0..CELLS).map(|i| 0.8 * (2.0 * place(i)).cos() + 0.2).collect();
    let (mut u, mut next) = (device.array(&start)?, device.zeros([CELLS])?);
    let target = device.array(&goal)?;
    let mut force = device.zeros([PERIODS, CELLS])?;
    let mut loss = device.zeros([])?;

    let g =
        driven().value_and_grad(driven::loss).wrt(driven::force).memory(Bytes::kib(64)).compile(&device)?;
    say!("{}", g.plan((&mut u, &mut next, &force, &target, STEPS, DT, &mut loss))?.explain());

    // Gradient descent; the length of a step is what the last two points say about the curvature.
    say!("iteration      misfit     |gradient|");
    let mut out = g.launch((&mut u, &mut next, &force, &target, STEPS, DT, &mut loss))?;
    let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
    for iteration in 0..=60 {
        let gradient = out.get(driven::force)?.to_vec();
        if iteration % 10 == 0 {
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            say!("{iteration:>9} {:>11.6} {norm:>14.3e}", out.value(driven::loss)?.value());
        }
        let here = force.to_vec();
        let step = match &last {
            None => 10.0,
            Some((point, slope)) => {
                let changes = || here.iter().zip(point).zip(gradient.iter().zip(slope));
                let along: f64 = changes().map(|((a, b), (g, h))| (a - b) * (g - h)).sum();
                let bend: f64 = changes().map(|(_, (g, h))| (g - h) * (g - h)).sum();
                (along / bend).clamp(0.1, 100.0)
            }
        };
        force.as_mut_slice().iter_mut().zip(&gradient).for_each(|(f, g)| *f -= step * g);
        last = Some((here, gradient));
        g.launch_into(&mut out, (&mut u, &mut next, &force, &target, STEPS, DT, &mut loss))?;
    }
    let found = out.value(driven::loss)?.value();

    let plain = driven().compile(&device)?;
    let run = |force: &Array2<f64>| -> Result<(Vec<f64>, f64), Failure> {
        let (mut u, mut next, mut loss) = (device.array(&start)?, device.zeros([CELLS])?, device.zeros([])?);
        let _done = plain.launch((&mut u, &mut next, force, &target, STEPS, DT, &mut loss))?;
        Ok((u.to_vec(), loss.value()))
    };
    let (end, _) = run(&force)?;
    show::curves(
        "the start (.), the goal (o) and what the force makes of the start (#)",
        13,
        &[('.', &start), ('o', &goal), ('#', &end)],
    );

    say!();
    // Without any force, where the slope is not nearly zero.
    let none = device.zeros([PERIODS, CELLS])?;
    g.launch_into(&mut out, (&mut u, &mut next, &none, &target, STEPS, DT, &mut loss))?;
    let gradient = out.get(driven::force)?.to_vec();
    let along: Vec<f64> = (0..PERIODS * CELLS).map(|k| (k as f64 * 0.37).sin()).collect();
    let slope: f64 = gradient.iter().zip(&along).map(|(g, a)| g * a).sum();
    let beside = |distance: f64| -> Result<f64, Failure> {
        let moved: Vec<f64> = along.iter().map(|a| distance * a).collect();
        Ok(run(&device.array_with_shape([PERIODS, CELLS], &moved)?)?.1)
    };
    let difference = (beside(1e-4)? - beside(-1e-4)?) / 2e-4;
    show::check("slope along a direction", slope, difference, 1e-7)?;
    if found < 0.05 { Ok(()) } else { Err(format!("the force leaves a misfit of {found}").into()) }
}
