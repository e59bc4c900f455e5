use ebbtide::prelude::*;

#[program]
fn newton(a: &Array2<f64>, b: &Array1<f64>, x: &mut Array1<f64>) {
    solve(a, b, x);
}

fn main() {}
