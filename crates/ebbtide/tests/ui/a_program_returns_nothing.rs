use ebbtide::prelude::*;

#[program]
fn p(x: &Array1<f64>) -> f64 {
    x[0]
}

fn main() {}
