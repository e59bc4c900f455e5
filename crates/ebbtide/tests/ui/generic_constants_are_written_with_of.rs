use ebbtide::prelude::*;

#[program]
fn p<T: Float>(x: &mut Array1<T>) {
    x[0] = 2.0 * x[1];
}

fn main() {}
