use ebbtide::prelude::*;

#[derive(Clone, Copy, Value)]
struct Body {
    pos: Vec2<f64>,
    mass: f64,
}

struct Plain {
    x: f64,
}

#[func]
fn f(a: Vec3<f64>, b: Vec2<f64>) -> f64 {
    let v = a + b;
    let w = a * a;
    a.x
}

#[program]
fn fields(x: &mut Array1<f64>) {
    let body = Body { pos: Vec2::new(1.0, 2.0) };
    let other = Body { pos: Vec2::new(1.0, 2.0), mass: 1.0, spin: 2.0 };
    x[0] = body.weight;
}

#[program]
fn plain(x: &mut Array1<f64>) {
    let p = Plain { x: 1.0 };
}

#[program]
fn constant(x: &mut Array1<f64>) {
    let body = Body { pos: Vec2::zero(), mass: 1.0 };
    body.mass = 2.0;
    let v = Vec3::new(1.0, 2.0);
}

#[derive(Clone, Copy, Value)]
struct Pair(f64, f64);

fn main() {}
