//! The physics, in Ebbtide's language: sound in a plane, fired at one place and heard along a row.

use ebbtide::prelude::*;

/// The slowest and the fastest rock that the inversion may find, and water, in km/s.
pub const SLOWEST: f32 = 1.4;
pub const FASTEST: f32 = 4.8;
pub const WATER: f32 = 1.5;

/// The speed of sound in a cell: an unknown of any size becomes a speed between the bounds.
#[func]
pub fn speed(x: f32, rock: f32) -> f32 {
    let found = SLOWEST + (FASTEST - SLOWEST) / (1.0 + (-x).exp());
    WATER + rock * (found - WATER)
}

/// How strongly a cell answers to the curvature of the field: (speed · dt / dx)².
#[program]
fn answer(x: &Array2<f32>, rock: &Array2<f32>, keep: &Array2<f32>, ratio: f32, strength: &mut Array2<f32>) {
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        let courant = speed(x[[i, j]], rock[[i, j]]) * ratio;
        strength[[i, j]] = keep[[i, j]] * courant * courant;
    }
}

/// The curvature of the field, times dx².
#[func]
fn curvature(u: &Array2<f32>, i: usize, j: usize) -> f32 {
    u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]] - 4.0 * u[[i, j]]
}

/// One time step: `past` becomes the future. `keep` is one inside and fades towards the edges.
#[program]
fn advance(u: &Array2<f32>, past: &mut Array2<f32>, strength: &Array2<f32>, keep: &Array2<f32>) {
    for (i, j) in par(1..u.dim(0) - 1, 1..u.dim(1) - 1) {
        let k = keep[[i, j]];
        past[[i, j]] = k * (2.0 * u[[i, j]] - k * past[[i, j]]) + strength[[i, j]] * curvature(u, i, j);
    }
}

/// What the receivers hear of one shot.
#[program]
pub fn shot(
    x: &Array2<f32>,
    rock: &Array2<f32>,
    keep: &Array2<f32>,
    ratio: f32,
    wavelet: &Array1<f32>,
    row: usize,
    column: usize,
    heard: &mut Array2<f32>,
) {
    let mut strength = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    let mut u = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    let mut past = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    answer(x, rock, keep, ratio, strength);
    for t in 0..wavelet.len() {
        advance(u, past, strength, keep);
        swap(u, past);
        u[[row, column]] += wavelet[t];
        for j in par(0..x.dim(1)) {
            heard[[t, j]] = u[[row, j]];
        }
    }
}

/// How far what the receivers would hear is from what they heard: half the sum of squares.
#[program]
pub fn misfit(
    x: &Array2<f32>,
    rock: &Array2<f32>,
    keep: &Array2<f32>,
    ratio: f32,
    wavelet: &Array1<f32>,
    row: usize,
    column: usize,
    heard: &Array2<f32>,
    loss: &mut Array0<f64>,
) {
    let mut strength = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    let mut u = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    let mut past = Array2::<f32>::zeros([x.dim(0), x.dim(1)]);
    answer(x, rock, keep, ratio, strength);
    for t in 0..wavelet.len() {
        advance(u, past, strength, keep);
        swap(u, past);
        u[[row, column]] += wavelet[t];
        for j in par(0..x.dim(1)) {
            let error = (u[[row, j]] - heard[[t, j]]) as f64;
            loss[[]] += 0.5 * error * error;
        }
    }
}
