use ebbtide::prelude::*;

#[func]
fn f([a, b]: [f64; 3]) -> f64 {
    a + b
}

#[program]
fn p(x: &mut Array1<f64>, v: &Array1<Vec2<f64>>) {
    let [a, b, c] = [1.0, 2.0];
    let [d, e] = v[0];
    let [g, h] = (1.0, 2.0);
    let (k, .., l) = [1.0, 2.0];
    let mut y = 0.0;
    let mut z = 0.0;
    [y, z] = [1.0, 2.0, 3.0];
    x[0] = a + y + z;
}

fn main() {}
