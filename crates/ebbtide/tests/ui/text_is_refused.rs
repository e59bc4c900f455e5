use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array1<f64>) {
    let name = "burgers";
    x[0] = 'c';
    println!("{} {}", x[0]);
    println!("{:x}", x[0]);
    dbg!(x[0]);
    assert!(x[0] > 0.0, "x is {}", x[0]);
    assert_eq!(x[0], 1.0);
}

fn main() {}
