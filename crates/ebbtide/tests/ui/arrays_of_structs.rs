//! Arrays of structs, with and without a derive: one error each, that says what to write.
use ebbtide::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Value)]
struct Body {
    pos: Vec2<f64>,
}

#[program]
fn derived(x: &mut Array1<Body>) {
    for i in par(0..x.len()) {
        x[i].pos.x = 1.0;
    }
}

struct Particle {
    mass: f64,
}

#[program]
fn plain(x: &Array1<Particle>, total: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let m = x[i].mass;
        total[[]] += 2.0 * m * x[i].mass;
    }
}

fn main() {}
