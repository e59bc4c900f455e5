use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array2<f64>) {
    let y = x[0][1];
    let z = x[(0, 1)];
}

fn main() {}
