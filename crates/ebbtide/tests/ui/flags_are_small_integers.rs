use ebbtide::prelude::*;

#[derive(Label)]
enum Stage {
    One,
}

#[program]
fn p(x: &mut Array1<f64>, flag: &Array0<f64>) {
    #[checkpoint(Stage::One, yield_on = flag)]
    {
        x[0] = 1.0;
    }
}

fn main() {}
