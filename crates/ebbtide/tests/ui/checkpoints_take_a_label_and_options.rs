use ebbtide::prelude::*;

#[derive(Label)]
enum Stage {
    One,
    Two,
}

#[program]
fn p(x: &mut Array1<f64>) {
    #[checkpoint(Stage::Two, redo)]
    {
        x[0] = 1.0;
    }
    #[checkpoint]
    {
        x[0] = 1.0;
    }
    #[checkpoint(Stage::One, undo = x)]
    {
        x[0] = 1.0;
    }
}

fn main() {}
