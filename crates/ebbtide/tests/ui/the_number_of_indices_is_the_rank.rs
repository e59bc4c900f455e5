use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array2<f64>, s: f64) {
    x[0] = 1.0;
    x[[0, 1]] = s[0];
    x[[0, 1]] = x[[]];
}

fn main() {}
