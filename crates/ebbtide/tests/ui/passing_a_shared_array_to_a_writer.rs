use ebbtide::prelude::*;

#[program]
fn writer(x: &mut Array1<f64>) {
    x[0] = 1.0;
}

#[program]
fn p(x: &Array1<f64>, y: &mut Array1<f64>) {
    writer(x);
    swap(x, y);
    copy(y, x);
}

fn main() {}
