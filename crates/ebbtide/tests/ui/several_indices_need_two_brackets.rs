use ebbtide::prelude::*;

#[program]
fn p(u: &mut Array2<f64>) {
    for (i, j) in par(0..u.dim(0), 0..u.dim(1)) {
        u[i, j] = 1.0;
    }
}

fn main() {
    println!("{}", p());
}
