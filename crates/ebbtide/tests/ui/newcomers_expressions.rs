//! What newcomers write in bodies: one error each, which says what to write.
use ebbtide::prelude::*;

#[program]
fn powers(u: &mut Array1<f64>, k: f64, n: f64) {
    for i in par(0..u.len()) {
        u[i] = k ** 2.0;
        u[i] = k ** n;
        u[i] = *k;
    }
}

#[program]
fn bits(u: &mut Array1<f64>) {
    for i in par(0..u.len()) {
        u[i] = u[i] ^ 2;
    }
}

#[program]
fn whole(u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        loss += u[i];
    }
}

#[program]
fn numbers(u: &mut Array1<f64>, k: f32) {
    for i in par(0..u.len()) {
        u[i] = 2 * u[i];
        u[i] *= k;
    }
}

#[program]
fn components(u: &mut Array1<f64>) {
    for i in par(0..u.length()) {
        let v = Vec2::new(u[i], 0.0);
        u[i] = v.x();
    }
}

fn main() {}
