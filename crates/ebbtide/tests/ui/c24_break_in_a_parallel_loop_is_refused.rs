use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        x[i] += 1.0;
        if x[i] > 1.0 {
            break;
        }
    }
}

fn main() {}
