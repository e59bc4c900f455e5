use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, idx: &Array1<i32>) {
    x[idx[0]] = 1.0;
    for i in 0..idx[1] {
        x[i] = 2.0;
    }
}

fn main() {}
