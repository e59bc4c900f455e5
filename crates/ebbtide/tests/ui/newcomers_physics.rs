//! What newcomers write of vectors, control and sums: one error each, which says what to write.
use ebbtide::prelude::*;

#[derive(Clone, Copy, Value)]
struct Body {
    pos: Vec2<f64>,
    mass: f64,
}

#[func]
fn kick(x: &mut f64, y: &mut f64) {
    *x += *y;
}

#[program]
fn vectors(x: &mut Array1<Vec3<f64>>, m: &Array1<Mat3<f64>>, s: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        s[i] = x[i].length();
        s[i] = x[i].magnitude();
        x[i] = x[i].normalized();
        x[i] = m[i].inv() * x[i];
        s[i] = m[i].det();
        kick(&mut s[i], &mut s[i + 1]);
        kick(&mut s[i], &mut (2.0 * s[i]));
    }
}

#[program]
fn constructed(x: &mut Array1<Vec3<f64>>) {
    for i in par(0..x.len()) {
        x[i] = Vec3(1.0, 2.0, 3.0);
    }
}

#[program]
fn multiplied(x: &mut Array1<Vec3<f64>>) {
    for i in par(0..x.len()) {
        x[i] = 2 * x[i];
        x[i].q = 1.0;
    }
}

#[program]
fn methods(u: &mut Array1<f64>, loss: &mut Array0<f64>) {
    loss[[]] = u.sum();
    loss[[]] = u.max();
    loss[[]] = u.mean();
}

#[program]
fn assigned(u: &mut Array1<f64>, loss: &mut Array0<f64>) {
    loss = sum(u);
}

#[program]
fn counted(u: &Array1<f64>, loss: &mut Array0<f64>) {
    let many = sum(0..u.len(), |j| u[j] > 0.0);
    loss[[]] = 1.0;
}

#[program]
fn dynamic(u: &mut Array1<f64>) {
    let n = u.len();
    let mut a = [0.0; n];
}

#[program]
fn local(u: &mut Array1<f64>, body: Body) {
    let n = u.len();
    for i in par(0..n) {
        let Body { pos, mass: 2.0 } = body;
        (u[0], u[1]) += (u[1], u[0]);
        assert_eq!(u[i], 1.0);
        dbg!(u[i]);
        let x = if u[i] > 0.0 { continue; };
    }
    for i in par(0..n).step_by(2) {
        u[i] = 0.0;
    }
    for i in par(n) {
        u[i] = 0.0;
    }
}

#[program]
fn taken_apart(u: &mut Array1<f64>, body: Body) {
    for i in par(0..u.len()) {
        let Body { mass } = body;
        let Body { pos, weight, .. } = body;
        let other = Body { mass: 2.0, ..mass };
        u[i] = other.mass;
    }
}

fn main() {}
