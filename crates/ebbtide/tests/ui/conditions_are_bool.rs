use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, k: i32) {
    if k {
        x[0] = 1.0;
    }
    while x[0] {
        x[0] -= 1.0;
    }
    let b = k > 0 && x[0];
}

fn main() {}
