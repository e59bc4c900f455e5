use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, y: &[f64]) {
    let part = x[1..3];
    let list = [1.0, 2.0];
    let both = (1.0, 2.0);
}

fn main() {}
