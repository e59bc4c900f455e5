use ebbtide::prelude::*;

#[program]
fn step<F: Fn(&Array1<f64>, &mut Array1<f64>)>(rhs: F, y: &mut Array1<f64>) {
    let mut k = Array1::<f64>::zeros([y.len()]);
    rhs(y, k);
    rhs(y);
}

#[program]
fn single(y: &Array1<f32>, k: &mut Array1<f32>) {
    for i in par(0..y.len()) {
        k[i] = y[i];
    }
}

#[program]
fn caller(y: &mut Array1<f64>) {
    step(single, y);
}

fn main() {}
