use ebbtide::prelude::*;

#[program]
fn p(x: &mut Array2<f64>) {
    for i in par(0..x.dim(0)) {
        for j in par(0..x.dim(1)) {
            x[[i, j]] = 1.0;
        }
    }
}

fn main() {}
