//! A plain function of Rust is not part of the language.
use ebbtide::prelude::*;

fn square(x: f64) -> f64 {
    x * x
}

mod physics {
    pub fn pressure(rho: f64, t: f64) -> f64 {
        rho * t
    }
}

#[program]
fn p(u: &mut Array1<f64>) {
    for i in par(0..u.len()) {
        u[i] = square(u[i]) + physics::pressure(u[i], 2.0);
    }
}

fn main() {
    square(1.0);
}
