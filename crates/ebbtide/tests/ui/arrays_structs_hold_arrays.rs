use ebbtide::prelude::*;

#[derive(Arrays)]
struct World {
    pos: Array2<f32>,
    name: String,
}

#[derive(Arrays)]
struct Tuple(Array1<f64>);

#[derive(Arrays)]
struct Options {
    #[arrays(ignore)]
    pos: Array2<f32>,
}

fn main() {}
