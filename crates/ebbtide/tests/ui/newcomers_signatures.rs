//! What newcomers write in signatures: one error each, which says what to write.
use ebbtide::prelude::*;

#[program]
fn generic<T>(u: &Array1<T>, v: &mut Array1<T>, k: T) {
    for i in par(1..u.len() - 1) {
        v[i] = u[i] + k * (u[i - 1] - u[i]);
    }
}

#[func]
fn square<T: Copy>(x: T) -> T {
    x * x
}

#[program]
fn vector(u: &mut Vec<f64>, n: u64) {
    for i in par(0..u.len()) {
        u[i] = square(n as f64);
    }
}

#[program]
fn indices(idx: &Array1<usize>, x: &f64, y: &mut f64) {
    for i in par(0..idx.len()) {
        idx[i] = x;
    }
}

struct World {
    u: Array1<f64>,
    k: f64,
}

#[program]
fn step(w: &mut World) {
    for i in par(0..w.u.len()) {
        w.u[i] *= w.k;
    }
}

struct Material {
    mu: f64,
}

#[program]
fn stress(u: &mut Array1<f64>, m: Material) {
    for i in par(0..u.len()) {
        u[i] = m.mu;
    }
}

impl World {
    #[program]
    fn method(&mut self) {
        fill(self.u, 0.0);
    }
}

fn main() -> ebbtide::Result<()> {
    let device = Device::best()?;
    let _ = (step().compile(&device)?, stress().compile(&device)?, generic::<f64>().compile(&device)?);
    Ok(())
}
