use ebbtide::prelude::*;

#[program]
fn broken(x: &mut Array1<f64>) {
    match 1 {}
}

#[program]
fn caller(x: &mut Array1<f64>, k: i32) {
    broken(x);
    broken(k);
}

fn uses() -> Program<broken> {
    let _name: Name<Array1<f64>> = broken::x;
    broken()
}

fn main() {}
