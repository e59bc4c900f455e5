//! Options of programs, and what operations take and return.
use ebbtide::prelude::*;

#[derive(Arrays)]
struct World {
    u: Array1<f64>,
}

#[program(adjoint = World)]
fn no_rule(u: &mut Array1<f64>) {
    u[0] = 1.0;
}

#[operation]
fn of_a_struct(w: &World) {
    let _ = w;
}

#[operation]
fn of_a_number(u: &Array1<f64>) -> f64 {
    u[0]
}

#[program]
fn scatters(a: &mut Array1<f64>, b: &Array1<f64>) {
    for i in par(0..a.len()) {
        scatter_unique(b, i, 1.0);
        scatter_unique(a, i, 1);
    }
}

fn main() {}
