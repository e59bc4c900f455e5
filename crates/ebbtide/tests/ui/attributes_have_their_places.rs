use ebbtide::prelude::*;

#[checkpoint(Stage::One)]
fn outside() {}

#[program]
fn p(x: &mut Array1<f64>, n: usize) {
    #[relaxed]
    for i in 0..n {
        x[i] = 1.0;
    }
    #[reverse(store_all)]
    for i in par(0..n) {
        x[i] = 1.0;
    }
    #[reverse(sometimes)]
    for i in 0..n {
        x[i] = 1.0;
    }
    for i in par(0..n) {
        #[checkpoint(Stage::One)]
        {
            x[i] = 1.0;
        }
    }
}

fn main() {}
