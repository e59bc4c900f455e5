use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    fn twice(y: f64) -> f64 {
        2.0 * y
    }
    struct Pair;
    x[0] = 1.0;
}

fn main() {}
