//! Structs and enums without `#[derive(Value)]`, and a struct as an element: one error for each function that names them, and none
//! where they are used.
use ebbtide::prelude::*;

#[derive(Clone, Copy)]
struct Body {
    pos: f64,
    vel: f64,
}

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

#[func]
fn drift(b: Body, dt: f64) -> Body {
    Body { pos: b.pos + dt * b.vel, vel: b.vel }
}

#[func]
fn kick(b: &mut Body, dt: f64) {
    b.vel -= dt * b.pos;
}

#[func]
fn sign(side: Side) -> f64 {
    match side {
        Side::Left => -1.0,
        Side::Right => 1.0,
    }
}

#[program]
fn elements(x: &mut Array1<Body>, dt: f64) {
    for i in par(0..x.len()) {
        let mut b = drift(x[i], dt);
        b.pos += dt * b.vel;
        kick(&mut b, dt);
        x[i] = b;
        x[i].vel = 1.0;
    }
}

#[program]
fn built_and_read(x: &mut Array1<f64>, dt: f64) {
    for i in par(0..x.len()) {
        let b = Body { pos: x[i], vel: dt };
        let c = drift(b, dt);
        x[i] = c.pos + b.vel;
    }
}

fn main() {}
