use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    let f = |y| y + 1.0;
    x[0] = f(x[0]);
}

fn main() {}
