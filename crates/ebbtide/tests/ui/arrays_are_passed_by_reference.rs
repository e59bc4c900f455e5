use ebbtide::prelude::*;

#[program]
fn by_value(x: Array1<f64>) {}

#[func]
fn of_a_slice(x: &[f64]) -> f64 {
    x[0]
}

#[program]
fn with_a_lifetime<'a>(x: &'a Array1<f64>, mut n: usize) {}

fn main() {}
