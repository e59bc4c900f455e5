//! Options of programs, and `scatter_unique` without a value.
use ebbtide::prelude::*;

#[program(gradient = other)]
fn wrong_option(u: &mut Array1<f64>) {
    u[0] = 1.0;
}

#[program(adjoint)]
fn without_a_name(u: &mut Array1<f64>) {
    u[0] = 1.0;
}

#[program]
fn scatters(a: &mut Array1<f64>) {
    for i in par(0..a.len()) {
        scatter_unique(a, i);
    }
}

fn main() {}
