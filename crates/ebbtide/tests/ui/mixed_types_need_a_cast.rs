use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f32>, y: &Array1<f64>, k: i32) {
    x[0] = x[1] + y[0];
    x[1] = y[1];
    let z: f32 = y[2];
    if x[0] < y[0] {
        x[2] = x[2] * k;
    }
}

fn main() {}
