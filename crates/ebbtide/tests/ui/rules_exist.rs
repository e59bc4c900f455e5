//! A rule is a program or an operation.
use ebbtide::prelude::*;

#[program(adjoint = missing)]
fn no_such_rule(u: &mut Array1<f64>) {
    u[0] = 1.0;
}

fn main() {}
