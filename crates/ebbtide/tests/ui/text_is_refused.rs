use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    let name = "burgers";
    x[0] = 'c';
    println!("{}", x[0]);
    assert!(x[0] > 0.0);
}

fn main() {}
