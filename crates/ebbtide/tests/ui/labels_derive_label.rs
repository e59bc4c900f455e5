use ebbtide::prelude::*;

enum Stage {
    One,
}

#[program]
fn p(x: &mut Array1<f64>) {
    #[checkpoint(Stage::One)]
    {
        x[0] = 1.0;
    }
}

fn main() {}
