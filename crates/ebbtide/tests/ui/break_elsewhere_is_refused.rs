use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    for i in 0..n {
        if x[i] > 1.0 {
            break;
        }
        x[i] += 1.0;
    }
    for i in 0..n {
        x[i] += 1.0;
        if x[i] > 1.0 {
            x[i] = 0.0;
            break;
        }
    }
}

fn main() {}
