use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, dt: f64) {
    let k = 1.0;
    k = 2.0;
    dt *= 0.5;
    for i in 0..3 {
        i += 1;
    }
    x[0] = k;
}

fn main() {}
