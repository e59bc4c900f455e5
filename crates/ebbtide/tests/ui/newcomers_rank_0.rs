//! Habits of other languages with losses, ranges and temporaries: one error each, which says what to write.

use ebbtide::prelude::*;

#[program]
fn python(u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[()] += u[i];
    }
}

#[program]
fn pointer(u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        *loss += u[i];
    }
}

#[program]
fn first(u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss[0] += u[i];
    }
}

#[program]
fn pairs(u: &mut Array2<f64>) {
    for (i, j) in par((0..u.dim(0), 0..u.dim(1))) {
        u[[i, j]] = 1.0;
    }
}

#[program]
fn temporaries(u: &mut Array1<f64>) {
    let mut t = Array1::<f64>::new([u.len()]);
    let mut s = Array1::<f64>::zeros(u.len());
    let mut r = vec![0.0; u.len()];
}

#[program]
fn integers(u: &mut Array1<f64>) {
    let n = u.len() as i32;
    for i in par(0..n) {
        u[i as usize] = 1.0;
    }
}

#[derive(Arrays)]
struct World {
    u: Array1<f64>,
    time: f64,
}

#[program]
fn clock(w: &mut World, dt: f64) {
    w.time += dt;
}

fn main() {}
