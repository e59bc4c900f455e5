use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    x[0] = x[0].gamma();
    x[1] = x[1].recip();
    x.fill(0.0);
    x[2] = x[2].powf();
}

fn main() {}
