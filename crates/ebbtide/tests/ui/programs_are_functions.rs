use ebbtide::prelude::*;

#[program]
struct NotAFunction;

#[program(fast)]
fn p(x: &mut Array1<f64>) {
    x[0] = 1.0;
}

#[program]
async unsafe fn q(x: &mut Array1<f64>) {
    x[0] = 1.0;
}

fn main() {}
