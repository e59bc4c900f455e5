//! Jumps and `match` in all places where Rust has them: in loops, in branches, in values.

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, differentiates, values};

fn seeded(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

fn whole(numbers: &[i32]) -> Input {
    Input::Elements(vec![numbers.len()], numbers.iter().map(|k| Literal::from(*k)).collect())
}

#[func]
fn edge(kind: i32, a: Vec2<f64>, b: Vec2<f64>) -> (Vec2<f64>, f64) {
    match kind {
        0 => (a, 0.0),
        1..=3 => {
            let d = b - a;
            (d, d.norm())
        }
        k if k < -9 => (Vec2::zero(), 0.0),
        k if k < 0 => (Vec2::splat(k as f64), a.dot(b)),
        _ => (a + b, 1.0),
    }
}

#[program]
fn matched(kind: &Array1<i32>, x: &Array1<Vec2<f64>>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let (d, r) = edge(kind[i], x[i], x[(i + 1) % n]);
        let s = match (i % 3) as i32 {
            0 => d.x * r,
            1 => match kind[i] {
                0 => d.y,
                _ => d.y * d.y,
            },
            _ => {
                if r > 0.5 {
                    continue;
                }
                d.norm_squared()
            }
        };
        y[i] += s;
    }
}

#[test]
fn matches_nest_and_have_small_values() {
    let kinds = whole(&[0, 1, -2, 7, 3, 2, -1, 0]);
    let inputs = [kinds, seeded(&[8, 2], 1), seeded(&[8], 2)];
    differentiates(&matched(), &inputs, "y", &["x"]);
}

#[func]
fn first_near(x: &Array1<Vec2<f64>>, p: Vec2<f64>, r: f64) -> (usize, Vec2<f64>) {
    for i in 0..x.len() {
        for k in 0..2 {
            let q = x[i] * (1.0 + k as f64);
            if (q - p).norm() < r {
                return (i, q * p.x);
            }
        }
    }
    (0, p)
}

#[program]
fn nearest(x: &Array1<Vec2<f64>>, y: &mut Array1<f64>, r: f64) {
    for i in par(0..y.len()) {
        let (k, q) = first_near(x, x[i] * 1.5, r);
        y[i] = q.x * q.y + k as f64;
    }
}

#[test]
fn a_function_returns_out_of_nested_loops() {
    let inputs = [seeded(&[6, 2], 1), array(&[0.0; 6]), Input::Scalar(0.3.into())];
    differentiates(&nearest(), &inputs, "y", &["x"]);
}

#[func]
fn guarded_root(kind: i32, x: f64) -> f64 {
    let y = match kind {
        0 => return -1.0,
        1 => x,
        _ => {
            if x < 0.0 {
                return x * x;
            }
            x + 1.0
        }
    };
    let z = if y > 0.0 { y.sqrt() } else { return y };
    match kind {
        1 => {
            if z > 0.9 {
                return z * 2.0;
            }
            z
        }
        _ => z * z * z,
    }
}

#[program]
fn jumping(kind: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let d = if x[i] > -0.5 { x[i] } else { continue };
        y[i] += guarded_root(kind[i], d);
        let mut s = 0.0;
        for k in 0..4 {
            s += if k == 2 { break } else { d * k as f64 };
            s *= match k {
                0 => 2.0,
                1 if d > 0.3 => continue,
                _ => d,
            };
            y[i] += s;
        }
    }
}

#[test]
fn jumps_stand_in_values() {
    let kinds = [0, 1, 2, 1, 2, 5, 1, 0];
    let x = [0.4, 0.9, -0.3, 0.2, 1.4, -0.9, -0.2, 0.1];
    let inputs = [whole(&kinds), array(&x), array(&[0.0; 8])];
    let plain = |k: usize| {
        let d = if x[k] > -0.5 { x[k] } else { return 0.0 };
        let mut y = guarded_root(kinds[k], d);
        let mut s = 0.0;
        for k in 0..4 {
            s += if k == 2 { break } else { d * k as f64 };
            s *= match k {
                0 => 2.0,
                1 if d > 0.3 => continue,
                _ => d,
            };
            y += s;
        }
        y
    };
    assert_eq!(values(&jumping(), &inputs, "y"), (0..8).map(plain).collect::<Vec<_>>());
    differentiates(&jumping(), &inputs, "y", &["x"]);
}

#[program]
#[deny(warnings)]
fn guarded(u: &Array1<f64>, y: &mut Array1<f64>) {
    let n = u.len();
    for i in par(0..n) {
        let j = i - 2;
        if j >= 0 && j < n {
            y[i] = u[j];
        }
        if i - 1 < 0 {
            y[i] += 1.0;
        }
        y[i] += if i - 1 >= 0 { u[i - 1] } else { 0.0 };
    }
}

#[test]
fn indices_are_compared_with_zero() {
    let inputs = [array(&[1.0, 2.0, 3.0]), array(&[0.0; 3])];
    assert_eq!(values(&guarded(), &inputs, "y"), [1.0, 1.0, 3.0]);
}
