//! An `impl` block without `#[programs]`: what an attribute makes of a function cannot stand in it.
use ebbtide::prelude::*;

struct World;

impl World {
    #[program]
    fn step(x: &mut Array1<f64>, dt: f64) {
        for i in par(0..x.len()) {
            x[i] += dt;
        }
    }

    #[func]
    pub fn energy(v: f64) -> f64 {
        0.5 * v * v
    }
}

fn main() {}
