//! Smoke in a box without walls: which wind at the beginning makes it end as it should?
//!
//! A step carries velocity and smoke along, backwards from each cell, then takes the divergence out of the velocity with a
//! pressure from Jacobi iterations. The gradient of the last picture, by the first velocity of every cell, goes back through
//! all of it under a memory budget, and is compared with differences.
//!
//! ```text
//! cargo run --release --example smoke
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const N: usize = 24;
const STEPS: usize = 16;
const ITERATIONS: usize = 12;
const DT: f64 = 0.6;

/// Velocity, smoke and pressure of every cell.
#[derive(Arrays)]
pub struct Air {
    /// The velocity.
    pub u: Array2<Vec2<f64>>,
    u_next: Array2<Vec2<f64>>,
    smoke: Array2<f64>,
    smoke_next: Array2<f64>,
    p: Array2<f64>,
    p_next: Array2<f64>,
}

/// The rows and columns of the four cells around a place, in a box that goes round, and their weights.
#[func]
fn around(at: Vec2<f64>) -> ([usize; 4], [usize; 4], [f64; 4]) {
    let (fx, fy) = (at.x.floor(), at.y.floor());
    let (i, j) = ((fx as i64).rem_euclid(N as i64) as usize, (fy as i64).rem_euclid(N as i64) as usize);
    let ((s, t), (i1, j1)) = ((at.x - fx, at.y - fy), ((i + 1) % N, (j + 1) % N));
    ([i, i, i1, i1], [j, j1, j, j1], [(1.0 - s) * (1.0 - t), (1.0 - s) * t, s * (1.0 - t), s * t])
}

/// Carries velocity and smoke along.
#[program]
fn advect(a: &mut Air) {
    for (i, j) in par(0..N, 0..N) {
        let (row, column, weight) = around(Vec2::new(i as f64, j as f64) - DT * a.u[[i, j]]);
        a.u_next[[i, j]] = sum(0..4, |k| weight[k] * a.u[[row[k], column[k]]]);
        a.smoke_next[[i, j]] = sum(0..4, |k| weight[k] * a.smoke[[row[k], column[k]]]);
    }
    swap(a.u, a.u_next);
    swap(a.smoke, a.smoke_next);
}

/// Takes the divergence out of the velocity.
#[program]
fn project(a: &mut Air) {
    fill(a.p, 0.0);
    for _k in 0..ITERATIONS {
        for (i, j) in par(0..N, 0..N) {
            let (left, right, down, up) = ((i + N - 1) % N, (i + 1) % N, (j + N - 1) % N, (j + 1) % N);
            let divergence = 0.5 * (a.u[[right, j]].x - a.u[[left, j]].x + a.u[[i, up]].y - a.u[[i, down]].y);
            let around = a.p[[left, j]] + a.p[[right, j]] + a.p[[i, down]] + a.p[[i, up]];
            a.p_next[[i, j]] = 0.25 * (around - divergence);
        }
        swap(a.p, a.p_next);
    }
    for (i, j) in par(0..N, 0..N) {
        let (left, right, down, up) = ((i + N - 1) % N, (i + 1) % N, (j + N - 1) % N, (j + 1) % N);
        a.u[[i, j]] -= 0.5 * Vec2::new(a.p[[right, j]] - a.p[[left, j]], a.p[[i, up]] - a.p[[i, down]]);
    }
}

/// How far the last picture is from the goal.
#[program]
pub fn simulate(a: &mut Air, goal: &Array2<f64>, loss: &mut Array0<f64>) {
    for _t in 0..STEPS {
        advect(a);
        project(a);
    }
    for (i, j) in par(0..N, 0..N) {
        loss[[]] += (a.smoke[[i, j]] - goal[[i, j]]).powi(2);
    }
}

/// A round puff of smoke.
pub fn puff(device: &Device, x: f64, y: f64) -> ebbtide::Result<Array2<f64>> {
    device.from_fn([N, N], |[i, j]| {
        let (dx, dy) = (i as f64 - x, j as f64 - y);
        (-(dx * dx + dy * dy) / 12.0).exp()
    })
}

/// A puff of smoke in this wind.
pub fn air(device: &Device, u: &Array2<Vec2<f64>>) -> ebbtide::Result<Air> {
    Ok(Air {
        u: u.try_clone()?,
        u_next: device.zeros([N, N])?,
        smoke: puff(device, 8.0, 9.0)?,
        smoke_next: device.zeros([N, N])?,
        p: device.zeros([N, N])?,
        p_next: device.zeros([N, N])?,
    })
}

/// Changes the first wind until the puff ends elsewhere.
pub fn main() -> Result<(), Failure> {
    // On a GPU sums at shared elements need 17 MiB, which is more than the budget below.
    let device = Device::cpu();
    let goal = puff(&device, 15.0, 13.0)?;
    let g = simulate()
        .value_and_grad(simulate::loss)
        .wrt(simulate::a.u)
        .memory(Bytes::mib(1))
        .compile(&device)?;
    let plain = simulate().compile(&device)?;
    let mut u = device.from_fn([N, N], |_| Vec2::new(0.3, 0.2))?;
    let (mut first, mut last) = (f64::INFINITY, f64::INFINITY);
    for round in 0..8 {
        let out = g.launch((&air(&device, &u)?, &goal, &device.scalar(0.0)?))?;
        let (value, slope) = (out.value(simulate::loss)?.value(), out.get(simulate::a.u)?);
        (first, last) = (if round == 0 { value } else { first }, value);
        say!("round {round}: the picture is off by {value:.4}");
        if round == 0 {
            let along = |[i, j]: [usize; 2]| Vec2::new((0.3 * i as f64).sin(), (0.2 * j as f64).cos());
            let at = |h: f64| -> Result<f64, Failure> {
                let moved = device.from_fn([N, N], |at| u[at] + h * along(at))?;
                let (mut a, mut loss) = (air(&device, &moved)?, device.scalar(0.0)?);
                let _done = plain.launch((&mut a, &goal, &mut loss))?;
                Ok(loss.value())
            };
            let cells = (0..N).flat_map(|i| (0..N).map(move |j| [i, j]));
            let slope: f64 = cells.map(|cell| slope[cell].dot(along(cell))).sum();
            show::check("slope along a direction", slope, (at(1e-6)? - at(-1e-6)?) / 2e-6, 1e-4)?;
        }
        let square: f64 = slope.iter().map(|s| s.norm_squared()).sum();
        u.iter_mut().zip(slope).for_each(|(u, s)| *u -= (0.5 * value / square) * *s);
    }
    if last < 0.3 * first { Ok(()) } else { Err(format!("the picture is off by {last}").into()) }
}
