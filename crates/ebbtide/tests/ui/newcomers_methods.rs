//! Methods of NumPy, of ndarray and of libraries of vectors.
use ebbtide::prelude::*;

#[program]
fn step(u: &mut Array1<f64>) {
    fill(u, 1.0);
}

#[program]
fn parts(x: &mut Array2<f64>, u: &mut Array1<f64>, n: usize) {
    for t in 0..n {
        step(x.slab(t));
        step(x.row(t));
    }
    for i in par(0..n) {
        u[i] = x.reshape(n);
    }
}

#[program]
fn values(p: &mut Array1<Vec2<f64>>, u: &mut Array1<f64>, k: &mut Array1<i32>) {
    for i in par(1..u.len()) {
        u[i] = p[i].distance(p[i - 1]);
        u[i] = u[i].lerp(u[i], 0.5);
        u[i] = u[i].fract();
        u[i] = u[i].copysign(1.0);
        if u[i].is_finite() {
            u[i] = k[i].astype();
        }
        k.push(1);
        u[i.saturating_sub(1)] = 0.0;
        u[i] = u[i].to_radians();
    }
}

#[program]
fn of_std(a: &mut Array1<f64>, b: &mut Array1<f64>) {
    std::mem::swap(a, b);
    std::thread::yield_now();
}

fn main() {}
