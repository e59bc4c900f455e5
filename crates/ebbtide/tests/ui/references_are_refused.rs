use ebbtide::prelude::*;

#[program]
fn callee(x: &mut Array1<f64>) {
    x[0] = 1.0;
}

#[program]
fn p(x: &mut Array1<f64>) {
    callee(&mut x);
    let y = &x;
    x[0] = *y;
}

fn main() {}
