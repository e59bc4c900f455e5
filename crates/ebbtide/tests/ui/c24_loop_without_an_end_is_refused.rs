use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    loop {
        x[0] += 1.0;
    }
    while true {
        x[0] += 1.0;
    }
}

fn main() {}
