use ebbtide::prelude::*;

#[program]
fn not_exhaustive(x: &mut Array1<f64>, k: i32) {
    match k {
        0 => x[0] = 1.0,
        1..=7 => x[0] = 2.0,
    }
}

#[program]
fn patterns(x: &mut Array1<f64>, k: i32) {
    match k {
        (a, b) => x[0] = 1.0,
        Some(n) => x[0] = 2.0,
        _ => x[0] = 3.0,
    }
}

#[program]
fn types(x: &mut Array1<f64>, k: i32) {
    x[0] = match k {
        0.5 => 1.0,
        _ => 2.0,
    };
}

fn main() {}
