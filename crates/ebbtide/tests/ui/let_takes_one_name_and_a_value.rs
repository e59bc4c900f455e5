use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    let y;
    let ref a = 1.0;
    let [b, ref c] = [1.0, 2.0];
    let mut t = Array2::<f64>::zeros([3]);
    x[0] + 1.0;
    x[0].sqrt();
}

fn main() {}
