use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array2<f64>) {
    for i in par(0..x.dim(0), 0..x.dim(1)) {
        x[[i, i]] = 1.0;
    }
    for i in par(x) {
        x[[i, i]] = 1.0;
    }
    let y = par(0..3);
}

fn main() {}
