use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    while let Some(k) = n {
        x[k] = 1.0;
    }
    if let 3 = n {
        x[0] = 1.0;
    }
}

fn main() {}
