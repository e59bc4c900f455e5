//! A program in a file without `use ebbtide::prelude::*;`: one error for each name.
#[ebbtide::program]
fn scale(u: &mut Array1<f64>, k: f64) {
    for i in par(0..u.len()) {
        u[i] *= k;
    }
}

fn main() {}
