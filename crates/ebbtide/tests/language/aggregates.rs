//! Small values inside one another, in local arrays with computed indices, and lent by `&mut`.

use ebbtide::ir::Literal;
use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, count, differentiates, shaped, values, zero};

fn seeded(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

#[derive(Clone, Copy, Value)]
struct Frame {
    turn: Mat3<f64>,
    at: Vec3<f64>,
}

#[derive(Clone, Copy, Value)]
struct Pair {
    near: Frame,
    far: [Vec3<f64>; 2],
    kind: i32,
    fixed: bool,
}

#[func]
fn apply(f: Frame, p: Vec3<f64>) -> Vec3<f64> {
    f.turn * p + f.at
}

#[func]
fn compose(a: Frame, b: Frame) -> Frame {
    Frame { turn: a.turn * b.turn, at: apply(a, b.at) }
}

#[func]
fn shift(f: &mut Frame, by: Vec3<f64>) {
    f.at += by;
    f.turn[[0, 1]] += by.x;
}

#[func]
fn twice(f: &mut Frame, by: Vec3<f64>) {
    shift(f, by);
    shift(f, 2.0 * by);
}

#[program]
fn frames(x: &Array1<Vec3<f64>>, m: &Array1<Mat3<f64>>, y: &mut Array1<Vec3<f64>>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut corners = [Vec3::zero(); 4];
        for k in 0..4 {
            corners[k] = x[i] * (k as f64);
            corners[k].y += 1.0;
        }
        let mut pair = Pair {
            near: Frame { turn: m[i], at: x[i] },
            far: [corners[1], corners[2]],
            kind: 2,
            fixed: x[i].x > 0.0,
        };
        pair.far[0] = pair.far[0].cross(pair.far[1]);
        pair.far[1].z *= 3.0;
        pair.near.at.x = 0.25;
        twice(&mut pair.near, pair.far[0]);
        let other = compose(pair.near, Frame { turn: Mat3::identity() * 2.0, at: corners[3] });
        if pair.fixed && pair.kind == 2 {
            y[i] = apply(other, corners[(i + 1) % 4]);
        } else {
            y[i] = -apply(other, pair.far[i % 2]);
        }
        loss[[]] += y[i].norm_squared();
    }
}

#[test]
fn structs_hold_matrices_and_arrays_of_vectors() {
    let inputs = [seeded(&[4, 3], 1), seeded(&[4, 3, 3], 2), shaped(&[4, 3], &[0.0; 12]), zero()];
    differentiates(&frames(), &inputs, "loss", &["x", "m"]);
}

#[func]
fn bump(x: &mut f64, by: f64) {
    *x += by * *x;
}

#[func]
fn spin(v: &mut Vec2<f64>, by: f64) -> f64 {
    let old = v.x;
    v.x = v.x * by.cos() - v.y * by.sin();
    v.y = old * by.sin() + v.y * by.cos();
    v.norm()
}

#[func]
#[allow(clippy::manual_swap, reason = "programs have no such method")]
fn exchange(a: &mut f64, b: &mut f64) {
    let t = *a;
    *a = *b;
    *b = t;
}

#[program]
fn lent(x: &mut Array1<f64>, v: &mut Array1<Vec2<f64>>, m: &mut Array2<f64>) {
    for i in par(0..x.len()) {
        bump(&mut x[i], 0.5);
        x[i] += spin(&mut v[i], x[i]);
        bump(&mut v[i].x, x[i]);
        let mut a = [x[i], v[i].x, v[i].y];
        bump(&mut a[1], 2.0);
        let mut last = a[2];
        exchange(&mut a[0], &mut last);
        a[2] = last;
        bump(&mut m[[i, 1]], a[0]);
        let mut p = Vec3::new(a[0], a[1], a[2]);
        bump(&mut p.z, p.x);
        bump(&mut p[i % 3], p.y);
        m[[i, 0]] += p.x * p.z + p.y;
    }
}

#[test]
fn elements_and_components_are_lent() {
    let inputs = [seeded(&[5], 1), seeded(&[5, 2], 2), seeded(&[5, 2], 3)];
    for of in ["x", "v", "m"] {
        differentiates(&lent(), &inputs, of, &["x", "v", "m"]);
    }
}

#[func]
fn insertion(x: [f64; 5], n: usize) -> [f64; 5] {
    let mut a = x;
    for i in 1..n {
        let v = a[i];
        let mut j = i;
        while j > 0 && a[j - 1] > v {
            a[j] = a[j - 1];
            j -= 1;
        }
        a[j] = v;
    }
    a
}

#[program]
fn ordered(x: &Array1<[f64; 5]>, y: &mut Array1<f64>, n: usize) {
    for i in par(0..x.len()) {
        let ((a, mut scale), (first, _)) = ((insertion(x[i], n), 2.0), (0.5, x[i][1]));
        scale += first;
        let mut bins = [0.0; 4];
        for k in 0..n {
            let b = ((a[k] * 10.0).abs() as usize) % 4;
            bins[b] += a[k] * a[k];
        }
        let mut stack = [Vec2::new(0.0, 0.0); 3];
        let mut top = 0;
        for k in 0..n {
            if top < 3 && a[k] > -0.2 {
                stack[top] = Vec2::new(a[k], bins[k % 4]);
                stack[top].x *= 2.0;
                top += 1;
            }
        }
        while top > 0 {
            top -= 1;
            y[i] += scale * stack[top].dot(stack[0]) * (top as f64 + 1.0);
        }
    }
}

#[test]
fn stacks_and_histograms_in_registers() {
    let inputs = [seeded(&[4, 5], 1), array(&[0.0; 4]), count(5)];
    differentiates(&ordered(), &inputs, "y", &["x"]);
}

const DIRS: [[i32; 2]; 5] = [[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]];
const W: [f64; 5] = [1.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0];

#[derive(Clone, Copy, PartialEq, Value)]
enum Wall {
    Open,
    Closed,
    Moving,
}

#[derive(Clone, Copy, Value)]
struct Cell {
    rho: f64,
    wall: Wall,
}

#[func]
fn at(wall: Wall, rho: f64) -> Cell {
    let wall = if rho > 0.0 { wall } else { Wall::Moving };
    Cell { rho, wall }
}

#[program]
fn lattice(f: &Array2<f64>, g: &mut Array2<f64>, wall: Wall) {
    let n = f.dim(0);
    for (i, j) in par((1..n - 1).rev(), (1..=n - 2).step_by(2)) {
        let mut rho = 0.0;
        for q in 0..5 {
            let e = DIRS[q];
            let r = (i as i32 + e[0]) as usize;
            let c = (j as i32 + e[1]) as usize;
            rho += W[q] * f[[r, c]];
        }
        let cell = at(wall, rho);
        g[[i, j]] += match cell.wall {
            Wall::Open => cell.rho,
            Wall::Closed => 0.0,
            Wall::Moving => cell.rho * cell.rho,
        };
        for k in (0..=i).rev().step_by(2) {
            if k == j {
                break;
            }
            g[[i, j]] += f[[k, j]] * f[[i, k]];
        }
    }
}

#[test]
fn tables_of_directions_and_enums_in_structs() {
    let inputs = [seeded(&[6, 6], 1), seeded(&[6, 6], 2), Input::Scalar(Literal::from(0i32))];
    differentiates(&lattice(), &inputs, "g", &["f", "g"]);
}

mod own_norm {
    use ebbtide::prelude::*;

    #[func]
    fn norm(v: Vec2<f64>) -> f64 {
        v.x.abs() + v.y.abs()
    }

    #[program]
    pub fn manhattan(x: &Array1<Vec2<f64>>, y: &mut Array1<f64>) {
        for i in par(0..x.len()) {
            y[i] = norm(x[i]);
        }
    }
}

#[test]
fn a_function_may_have_the_name_of_one_of_the_prelude() {
    let inputs = [shaped(&[2, 2], &[1.0, -2.0, 3.0, 0.5]), array(&[0.0; 2])];
    assert_eq!(values(&own_norm::manhattan(), &inputs, "y"), [3.0, 3.5]);
}

#[func]
fn inverted(a: Mat4<f64>, b: Mat4<f64>) -> f64 {
    let c = (a + Mat4::identity() * 3.0).inverse() * b;
    c.trace() + b.determinant() + c[[1, 2]] * c[3].w
}

#[program]
fn inverses(a: &Array1<Mat4<f64>>, y: &mut Array1<f64>) {
    for i in par(0..a.len()) {
        y[i] = inverted(a[i], a[(i + 1) % 3]);
    }
}

#[test]
fn matrices_of_four_rows_have_determinants_and_inverses() {
    let numbers: Vec<f64> = (0..48).map(|k| ((k * 7 % 11) as f64 - 5.0) / 6.0).collect();
    let matrix = |k: usize| {
        let mut next = numbers[16 * k..16 * k + 16].iter().copied();
        Mat4::from_elements(std::array::from_fn(|_| next.next().unwrap()))
    };
    let inputs = [shaped(&[3, 4, 4], &numbers), array(&[0.0; 3])];
    let expected: Vec<f64> = (0..3).map(|k| inverted(matrix(k), matrix((k + 1) % 3))).collect();
    assert_eq!(values(&inverses(), &inputs, "y"), expected);
    differentiates(&inverses(), &inputs, "y", &["a"]);
    for k in 0..3 {
        let m = matrix(k) + 3.0 * Mat4::identity();
        let back = m * m.inverse() - Mat4::identity();
        assert!(back.to_elements().iter().all(|x| x.abs() < 1e-13));
        assert!((m.determinant() * m.inverse().determinant() - 1.0).abs() < 1e-13);
        let column = m.inverse() * Vec4::new(1.0, 2.0, 3.0, 4.0) - m.solve(Vec4::new(1.0, 2.0, 3.0, 4.0));
        assert!(column.norm() < 1e-13);
    }
}

/// Momentum: what it needs beside `x` is declared in one `let`.
#[program]
fn momentum(x: &mut Array1<f64>, rate: f64, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    let (mut slope, mut speed) = (Array1::<f64>::zeros([n]), Array1::<f64>::zeros([n]));
    for _t in 0..steps {
        for i in par(0..n) {
            slope[i] = x[i].powi(3) - x[(i + 1) % n];
        }
        for i in par(0..n) {
            speed[i] = 0.9 * speed[i] - rate * slope[i];
            x[i] += speed[i];
        }
    }
    loss[[]] = dot(x, x);
}

#[test]
fn several_temporaries_are_declared_in_one_let() {
    let inputs = [array(&[0.3, -0.8, 1.1]), Input::Scalar(0.1.into()), count(4), zero()];
    differentiates(&momentum(), &inputs, "loss", &["x", "rate"]);
}
