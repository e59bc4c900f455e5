use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    for y in x {
        y += 1.0;
    }
    for i in (0..n).rev() {
        x[i] = 1.0;
    }
    for i in (0..n).step_by(2) {
        x[i] = 1.0;
    }
    for i in 0.. {
        x[i] = 1.0;
    }
    x[0] = x.iter().sum();
}

fn main() {}
