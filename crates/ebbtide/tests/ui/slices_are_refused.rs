use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, y: &[f64]) {
    let part = x[1..3];
}

fn main() {}
