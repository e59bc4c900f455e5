use ebbtide::prelude::*;

#[func]
fn nothing(x: f64) {}

#[func]
fn writes(x: &mut Array1<f64>) -> f64 {
    x[0]
}

#[func]
fn no_tail(x: f64) -> f64 {
    let y = x;
}

fn main() {}
