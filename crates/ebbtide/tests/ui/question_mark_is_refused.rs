use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, k: i32) {
    x[0] = k?;
}

fn main() {}
