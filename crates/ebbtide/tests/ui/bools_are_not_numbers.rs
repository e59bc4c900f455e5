use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>, b: bool, n: usize) {
    let c = b + b;
    x[0] = n.sqrt() as f64;
    let d = x[0] as bool;
    let e = !x[0];
    let f = x[0] as u8;
}

fn main() {}
