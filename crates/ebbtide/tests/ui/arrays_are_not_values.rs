use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, y: &Array1<f64>) {
    let z = x;
    x = y;
    x[0] = y + 1.0;
}

fn main() {}
