use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    for y in x {
        y += 1.0;
    }
    for i in (0..n).skip(1) {
        x[i] = 1.0;
    }
    for i in (0..n).rev().map(f) {
        x[i] = 1.0;
    }
    for i in 0.. {
        x[i] = 1.0;
    }
    x[0] = x.iter().sum();
}

fn main() {}
