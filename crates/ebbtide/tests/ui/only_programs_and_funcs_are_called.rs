use ebbtide::prelude::*;

fn helper(x: f64) -> f64 {
    x
}

#[program]
fn p(x: &mut Array1<f64>) {
    x[0] = helper(x[0]);
}

fn main() {}
