//! Methods of arrays on the host, and other habits, in programs: one error each, which says what to write.
use ebbtide::prelude::*;

#[program]
fn step(u: &mut Array1<f64>, v: &Array2<f64>, loss: &mut Array0<f64>) {
    u[-1] = 0.0;
    u.copy_from(v);
    u[0] = loss.value();
    u[0] = u.get(0);
    let n = v.nrows();
    if u.is_empty() {
        panic!("empty");
    }
}

#[program]
fn literals(u: &mut Array1<f64>, n: usize) {
    for i in par(0..n) {
        if u[i] > 0 {
            u[i] = 2 * u[i];
        }
    }
}

fn main() {}
