//! An elastic block in the material point method (MLS-MPM), thrown so that it lands where it should.
//!
//! Positions, velocities, velocity gradients and deformations of particles are vectors and matrices; the momentum of a
//! step goes to a grid and comes back. The gradient of where the block ends up, by the velocity that it is thrown with, goes
//! back through all steps, scatters into the grid included, and is compared with differences.
//!
//! ```text
//! cargo run --release --example mpm
//! ```

#[path = "show.rs"]
#[macro_use]
mod show;

use ebbtide::prelude::*;
use show::Failure;

const SIDE: usize = 12;
const PARTICLES: usize = SIDE * SIDE;
const CELLS: usize = 32;
const STEPS: usize = 400;
const DT: f64 = 5e-4;
const DX: f64 = 1.0 / CELLS as f64;
/// The volume of a particle; its mass is the same, since the density is one.
const VOLUME: f64 = 0.25 * DX * DX;
const MU: f64 = 20.0;
const LAMBDA: f64 = 30.0;

/// Particles, and the grid below them.
#[derive(Arrays)]
pub struct Block {
    x: Array1<Vec2<f64>>,
    v: Array1<Vec2<f64>>,
    /// The gradient of the velocity around a particle.
    c: Array1<Mat2<f64>>,
    /// The deformation of a particle.
    f: Array1<Mat2<f64>>,
    grid_v: Array2<Vec2<f64>>,
    grid_m: Array2<f64>,
}

/// The weights of three cells in a row, for a particle at `d` cells from the first.
#[func]
fn weights(d: f64) -> [f64; 3] {
    [0.5 * (1.5 - d).powi(2), 0.75 - (d - 1.0).powi(2), 0.5 * (d - 0.5).powi(2)]
}

/// The cell at the corner of those that a particle touches, and where the particle is from there, in cells.
#[func]
fn corner(x: Vec2<f64>) -> (usize, usize, Vec2<f64>) {
    let (i, j) = ((x.x / DX - 0.5) as usize, (x.y / DX - 0.5) as usize);
    (i, j, x / DX - Vec2::new(i as f64, j as f64))
}

#[program]
fn to_grid(b: &mut Block) {
    for p in par(0..b.x.len()) {
        let (i, j, d) = corner(b.x[p]);
        let (wx, wy) = (weights(d.x), weights(d.y));
        let f = (Mat2::identity() + DT * b.c[p]) * b.f[p];
        b.f[p] = f;
        let volume = f.determinant();
        assert!(volume > 0.0, "a particle is turned inside out");
        let stress = MU * (f * f.transpose() - Mat2::identity()) + LAMBDA * volume.ln() * Mat2::identity();
        let affine = VOLUME * b.c[p] - (4.0 * DT * VOLUME / (DX * DX)) * stress;
        for k in 0..3 {
            for l in 0..3 {
                let to = DX * (Vec2::new(k as f64, l as f64) - d);
                let weight = wx[k] * wy[l];
                b.grid_v[[i + k, j + l]] += weight * (VOLUME * b.v[p] + affine * to);
                b.grid_m[[i + k, j + l]] += weight * VOLUME;
            }
        }
    }
}

#[program]
fn on_grid(b: &mut Block) {
    for (i, j) in par(0..CELLS, 0..CELLS) {
        let mass = b.grid_m[[i, j]];
        if mass == 0.0 {
            continue;
        }
        let mut v = b.grid_v[[i, j]] / mass - Vec2::new(0.0, 9.8 * DT);
        // The floor holds what comes down; walls hold what comes near.
        if j < 3 && v.y < 0.0 {
            v = Vec2::zero();
        }
        if (i < 3 && v.x < 0.0) || (i + 3 > CELLS && v.x > 0.0) {
            v.x = 0.0;
        }
        b.grid_v[[i, j]] = v;
    }
}

#[program]
fn to_particles(b: &mut Block) {
    for p in par(0..b.x.len()) {
        let (i, j, d) = corner(b.x[p]);
        let (wx, wy) = (weights(d.x), weights(d.y));
        let (mut v, mut c) = (Vec2::zero(), Mat2::zero());
        for k in 0..3 {
            for l in 0..3 {
                let here = wx[k] * wy[l] * b.grid_v[[i + k, j + l]];
                v += here;
                c += (4.0 / DX) * here.outer(Vec2::new(k as f64, l as f64) - d);
            }
        }
        b.v[p] = v;
        b.c[p] = c;
        b.x[p] += DT * v;
    }
}

/// Throws the block with one velocity; `loss` is how far its centre ends from the goal, squared.
#[program]
pub fn throw(b: &mut Block, velocity: &Array0<Vec2<f64>>, goal: Vec2<f64>, loss: &mut Array0<f64>) {
    fill(b.v, velocity[[]]);
    for _t in 0..STEPS {
        fill(b.grid_v, Vec2::zero());
        fill(b.grid_m, 0.0);
        to_grid(b);
        on_grid(b);
        to_particles(b);
    }
    let centre = sum(b.x) / b.x.len() as f64;
    loss[[]] = (centre - goal).norm_squared();
}

/// A block at rest above the floor.
pub fn block(device: &Device) -> ebbtide::Result<Block> {
    let place = |k: usize| 0.5 * DX * k as f64;
    Ok(Block {
        x: device.from_fn([PARTICLES], |[p]| Vec2::new(0.2 + place(p / SIDE), 0.35 + place(p % SIDE)))?,
        v: device.zeros([PARTICLES])?,
        c: device.zeros([PARTICLES])?,
        f: device.from_fn([PARTICLES], |_| Mat2::identity())?,
        grid_v: device.zeros([CELLS, CELLS])?,
        grid_m: device.zeros([CELLS, CELLS])?,
    })
}

/// Throws the block six times, each time nearer to the goal.
pub fn main() -> Result<(), Failure> {
    // On a GPU sums at shared elements need 17 MiB, which is more than the budget below.
    let device = Device::cpu();
    let goal = Vec2::new(0.6, 0.3);
    let g =
        throw().value_and_grad(throw::loss).wrt(throw::velocity).memory(Bytes::mib(16)).compile(&device)?;
    let mut velocity = device.scalar(Vec2::new(0.5, 1.0))?;
    let mut last = f64::INFINITY;
    for throws in 0..6 {
        let (mut b, mut loss) = (block(&device)?, device.scalar(0.0)?);
        let out = g.launch((&mut b, &velocity, goal, &mut loss))?;
        let (value, slope) = (out.value(throw::loss)?.value(), out.get(throw::velocity)?.value());
        say!(
            "throw {throws} with velocity {:.4?}: {:.5} from the goal",
            velocity[[]].to_array(),
            value.sqrt()
        );
        if throws == 0 {
            let plain = throw().compile(&device)?;
            let at = |moved: f64| -> Result<f64, Failure> {
                let (mut b, mut loss) = (block(&device)?, device.scalar(0.0)?);
                let moved = device.scalar(Vec2::new(0.5 + 0.6 * moved, 1.0 - 0.8 * moved))?;
                let _done = plain.launch((&mut b, &moved, goal, &mut loss))?;
                Ok(loss.value())
            };
            let difference = (at(1e-5)? - at(-1e-5)?) / 2e-5;
            show::check("slope along a direction", 0.6 * slope.x - 0.8 * slope.y, difference, 1e-5)?;
        }
        velocity[[]] -= 8.0 * slope;
        last = value.sqrt();
    }
    if last < 0.02 { Ok(()) } else { Err(format!("the block lands {last} from the goal").into()) }
}
