//! Elements that are small values, and parts of arrays.
use ebbtide::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Value)]
struct Body {
    pos: Vec2<f64>,
}

#[program]
fn structs(x: &mut Array1<Body>) {
    for i in par(0..x.len()) {
        x[i].pos.x = 1.0;
    }
}

#[program]
fn types(x: &mut Array1<Vec3<f64>>, y: &Array1<Vec3<f64>>) {
    for i in par(0..x.len()) {
        x[i] = 1.0;
        x[i].w = 1.0;
        x[i][[0, 1]] = 1.0;
        y[i].x = 1.0;
        x[[i, 0]] = 1.0;
        x[i].max_assign(y[i]);
    }
}

#[program]
fn row(x: &mut Array1<f64>) {
    fill(x, 0.0);
}

#[program]
fn parts(x: &mut Array3<f64>, y: &Array2<f64>) {
    row(x[[0, ..]]);
    row(x[[0, .., ..]]);
    row(y[[0, ..]]);
}

#[program]
fn no_parts(x: &mut Array2<f64>) {
    row(x[[.., 0]]);
    row(x[[0, 1..=2]]);
    let r = x[[0, ..]];
    x[0][1][2] = 1.0;
}

fn main() {}
