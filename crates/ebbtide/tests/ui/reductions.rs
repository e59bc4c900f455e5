use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, y: f64) {
    x[0] = max(x[1], y);
    x[1] = sum(0..3, x);
    x[2] = sum(0..3, |i, j| x[i]);
    let f = |j| x[j];
}

fn main() {}
