use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, k: i32) {
    match k {
        0 => x[0] = 1.0,
        _ => x[0] = 2.0,
    }
}

fn main() {}
