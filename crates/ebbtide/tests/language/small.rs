//! Vectors, matrices, tuples, arrays of a fixed length, structs of values.

use ebbtide::prelude::*;
use ebbtide_conformance::{Input, element};
use expect_test::expect;

use crate::{array, count, differentiates, shaped, values, zero};

fn check<P: ebbtide::__lang::Source>(program: &Program<P>, expected: expect_test::Expect) {
    program.ir().unwrap();
    expected.assert_eq(&program.to_string());
}

/// Numbers made from a seed, as arrays of inputs have them.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    (0..n).map(|k| element(ebbtide::ir::Type::F64, seed, k as u64).to_f64()).collect()
}

/// One of everything that vectors and matrices do, as a number.
#[func]
fn mixture(a: Vec3<f64>, b: Vec3<f64>, s: f64) -> f64 {
    let m = a.outer(b) + Mat3::identity() * 2.0 - Mat3::diagonal(Vec3::new(s, 1.0, 0.5));
    let n = m * m.transpose() + 3.0 * Mat3::identity();
    let mut v = n.inverse() * (a - 2.0 * b) / 1.5;
    v += a.cross(b);
    v -= b;
    v *= 0.5;
    v.x += s;
    let q = Mat2::new(a.x, b.y, s, 4.0);
    let w = q.inverse() * Vec2::new(v[0], v.z) + q * Vec2::splat(1.0);
    let four = Vec4::new(w.x, w.y, v.y, 1.0);
    -v.dot(b)
        + n.determinant()
        + m.trace()
        + w.norm()
        + four.normalize().w
        + q.determinant()
        + (-four).norm_squared()
        + m[[1, 2]] * m[0].z
}

#[program]
fn mixtures(x: &Array2<f64>, y: &mut Array1<f64>, s: f64) {
    for i in par(0..y.len()) {
        let a = Vec3::new(x[[i, 0]], x[[i, 1]], x[[i, 2]]);
        let b = Vec3::new(x[[i, 3]], x[[i, 4]], x[[i, 5]]);
        y[i] = mixture(a, b, s);
    }
}

#[test]
fn vectors_and_matrices_are_those_of_plain_rust() {
    for seed in 0..3 {
        let inputs = [Input::Array(vec![4, 6], seed), Input::Array(vec![4], 1), Input::Scalar(0.75.into())];
        let x = numbers(24, seed);
        let vector = |k: usize| Vec3::new(x[k], x[k + 1], x[k + 2]);
        let expected: Vec<f64> = (0..4).map(|i| mixture(vector(6 * i), vector(6 * i + 3), 0.75)).collect();
        assert_eq!(values(&mixtures(), &inputs, "y"), expected);
        differentiates(&mixtures(), &inputs, "y", &["x", "s"]);
    }
}

#[program]
fn shear(u: &Array2<f64>, v: &mut Array2<f64>) {
    for i in par(0..u.dim(0)) {
        let mut p = Vec2::new(u[[i, 0]], u[[i, 1]]);
        p += Mat2::new(1.0, 2.0, 0.0, 1.0) * p;
        p.y = -p.y;
        let q = if p.x > 0.0 { p } else { 2.0 * p };
        v[[i, 0]] = q.x;
        v[[i, 1]] = q.y;
    }
}

#[test]
fn a_small_value_is_its_components() {
    check(
        &shear(),
        expect![[r#"
        program shear(u: &Array2<f64>, v: &mut Array2<f64>) {
            for i in par(0..u.dim(0)) {
                let v6 = u[[i, 1]];
                let mut p.x = u[[i, 0]];
                let mut p.y = v6;
                let v11 = p.x;
                let v12 = p.y;
                let v22 = p.y + (0.0 * v11 + 1.0 * v12);
                p.x = p.x + (1.0 * v11 + 2.0 * v12);
                p.y = v22;
                p.y = -p.y;
                let v29 = p.x > 0.0;
                let q.x = select(v29, p.x, 2.0 * p.x);
                let q.y = select(v29, p.y, 2.0 * p.y);
                v[[i, 0]] = q.x;
                v[[i, 1]] = q.y;
            }
        }
    "#]],
    );
    let inputs = [Input::Array(vec![5, 2], 1), Input::Array(vec![5, 2], 2)];
    differentiates(&shear(), &inputs, "v", &["u"]);
}

#[derive(Clone, Copy, Value)]
struct Body {
    pos: Vec2<f64>,
    vel: Vec2<f64>,
    mass: f64,
}

#[func]
fn split(x: f64) -> (f64, i32) {
    let whole = x.floor();
    (x - whole, whole as i32)
}

#[func]
fn kick(body: &mut Body, force: Vec2<f64>, work: &mut f64) -> f64 {
    let before = body.vel.norm_squared();
    body.vel += force / body.mass;
    body.pos += body.vel * 0.1;
    let after = body.vel.norm_squared();
    *work += 0.5 * body.mass * (after - before);
    after
}

#[func]
fn flight(x: f64, y: f64, steps: usize) -> (Body, f64) {
    let mut body = Body { mass: 2.0 + y * y, pos: Vec2::new(x, y), vel: Vec2::zero() };
    let mut work = 0.0;
    for k in 0..steps {
        let (rest, whole) = split(x * k as f64);
        let pull = Vec2::new(rest - body.pos.x, 0.1 * whole as f64 - body.pos.y);
        let square = kick(&mut body, pull, &mut work);
        if square > 4.0 {
            return (body, work);
        }
    }
    (body, work)
}

#[program]
fn flights(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>, steps: usize) {
    for i in par(0..x.len()) {
        let (body, mut work) = flight(x[i], 0.5, steps);
        work *= body.mass;
        y[i] = work + body.pos.dot(body.vel);
        loss[[]] += y[i];
    }
}

#[test]
fn functions_have_several_results_and_change_what_they_are_lent() {
    let x = numbers(6, 4);
    for steps in [0, 1, 7] {
        let plain = |x: f64| {
            let (body, work) = flight(x, 0.5, steps);
            work * body.mass + body.pos.dot(body.vel)
        };
        let inputs = [array(&x), array(&[0.0; 6]), zero(), count(steps)];
        assert_eq!(values(&flights(), &inputs, "y"), x.iter().map(|x| plain(*x)).collect::<Vec<_>>());
        differentiates(&flights(), &inputs, "loss", &["x"]);
    }
}

const WEIGHTS: [f64; 4] = [0.5, -1.0, 2.0, 0.25];
const STENCIL: [[f64; 3]; 2] = [[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]];

/// A polynomial of degree `N - 1`.
#[func]
fn horner<T: Float, const N: usize>(c: [T; N], x: T) -> T {
    let mut y = T::of(0.0);
    for k in (0..N).rev() {
        y = y * x + c[k];
    }
    y
}

#[func]
#[allow(clippy::manual_swap, reason = "programs have no such method")]
fn sorted(mut_me: [f64; 3]) -> [f64; 3] {
    let mut a = mut_me;
    for i in 0..3 {
        for j in 0..2 - i {
            if a[j] > a[j + 1] {
                let t = a[j];
                a[j] = a[j + 1];
                a[j + 1] = t;
            }
        }
    }
    a
}

#[program]
fn tables(x: &Array2<f64>, k: &Array1<i32>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        let mut a = [0.0; 3];
        for j in 0..3 {
            a[j] += x[[i, j]] * STENCIL[i % 2][j] + WEIGHTS[j];
        }
        let b = sorted([x[[i, 0]], x[[i, 1]], x[[i, 2]]]);
        // A computed index: data says which.
        let c = k[i] as usize;
        a[c] *= 2.0;
        a[(c + 1) % 3] = b[c];
        y[i] = horner(a, b[2]) + horner([b[0], b[1]], WEIGHTS[c]) + WEIGHTS.len() as f64;
    }
}

#[test]
fn arrays_of_a_fixed_length_have_constant_and_computed_indices() {
    let (n, x) = (6, numbers(18, 3));
    let k = [0, 1, 2, 1, 0, 2];
    let expected: Vec<f64> = (0..n)
        .map(|i| {
            let mut a = [0.0; 3];
            for j in 0..3 {
                a[j] += x[3 * i + j] * STENCIL[i % 2][j] + WEIGHTS[j];
            }
            let b = sorted([x[3 * i], x[3 * i + 1], x[3 * i + 2]]);
            let c = k[i];
            a[c] *= 2.0;
            a[(c + 1) % 3] = b[c];
            horner(a, b[2]) + horner([b[0], b[1]], WEIGHTS[c]) + 4.0
        })
        .collect();
    let k = Input::Elements(vec![n], k.map(|k| ebbtide::ir::Literal::from(k as i32)).to_vec());
    let inputs = [shaped(&[n, 3], &x), k, array(&vec![0.0; n])];
    assert_eq!(values(&tables(), &inputs, "y"), expected);
    differentiates(&tables(), &inputs, "y", &["x"]);
    // Constant loops over the items are unrolled: no loop is left.
    assert!(!tables().to_string().contains("for j in"), "{}", tables());
}

/// Differences of neighbours: the last component has none.
#[func]
fn rough(a: [f64; 4], i: usize) -> f64 {
    let mut s = 0.0;
    for k in 0..4 {
        if k + 1 < 4 && a[k + 1] > a[k] {
            s += (a[k + 1] - a[k]) * a[k];
        }
    }
    let pairs = [Vec2::new(a[0], a[1]), Vec2::new(a[2], a[3])];
    if i < 2 && pairs[i].x > 0.0 { s } else { s + 1.0 }
}

#[program]
fn roughs(x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        y[i] = rough([x[i], x[i + 1], x[i + 2], x[i + 3]], i);
    }
}

#[test]
fn what_a_branch_rules_out_is_no_error() {
    let x = numbers(8, 6);
    let expected: Vec<f64> = (0..5).map(|i| rough([x[i], x[i + 1], x[i + 2], x[i + 3]], i)).collect();
    let inputs = [array(&x), array(&[0.0; 5])];
    assert_eq!(values(&roughs(), &inputs, "y"), expected);
    differentiates(&roughs(), &inputs, "y", &["x"]);
}

#[program]
fn by_vectors(x: &Array2<f64>, y: &mut Array2<f64>, a: f64) {
    for i in par(0..x.dim(0)) {
        let p = Vec3::new(x[[i, 0]], x[[i, 1]], x[[i, 2]]);
        let q = p * a;
        let s = q.dot(p);
        let r = q / s;
        y[[i, 0]] = r.x;
        y[[i, 1]] = r.y;
        y[[i, 2]] = r.z;
    }
}

#[program]
fn by_components(x: &Array2<f64>, y: &mut Array2<f64>, a: f64) {
    for i in par(0..x.dim(0)) {
        let px = x[[i, 0]];
        let py = x[[i, 1]];
        let pz = x[[i, 2]];
        let qx = px * a;
        let qy = py * a;
        let qz = pz * a;
        let tx = qx * px;
        let ty = qy * py;
        let tz = qz * pz;
        let s = tx + ty + tz;
        let rx = qx / s;
        let ry = qy / s;
        let rz = qz / s;
        y[[i, 0]] = rx;
        y[[i, 1]] = ry;
        y[[i, 2]] = rz;
    }
}

#[test]
fn a_small_value_costs_what_its_components_cost() {
    let device = crate::cpu();
    // The text that is compiled, but for the lines of the source that it names.
    let text = |source: Option<&str>| -> Vec<String> {
        source.unwrap().lines().filter(|line| !line.contains("/* line")).map(str::to_string).collect()
    };
    let (small, plain) = (by_vectors().compile(&device).unwrap(), by_components().compile(&device).unwrap());
    assert_eq!(text(small.source()), text(plain.source()));
    let small = by_vectors().vjp(by_vectors::y).wrt(by_vectors::x).compile(&device).unwrap();
    let plain = by_components().vjp(by_components::y).wrt(by_components::x).compile(&device).unwrap();
    assert_eq!(text(small.source()), text(plain.source()));
}

#[test]
fn a_computed_index_is_checked() {
    let k = Input::Elements(vec![1], vec![ebbtide::ir::Literal::from(3i32)]);
    let inputs = [shaped(&[1, 3], &[1.0, 2.0, 3.0]), k, array(&[0.0])];
    for device in [Device::interpreter(), crate::cpu()] {
        let error =
            ebbtide_conformance::run(tables().ir().unwrap(), &device, &inputs).unwrap_err().to_string();
        assert!(error.contains("out of bounds: there are 3 items") && error.contains("small.rs:"), "{error}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Value)]
enum Wall {
    Open,
    Periodic,
    Closed,
}

#[func]
fn neighbour(wall: Wall, i: usize, n: usize) -> usize {
    match wall {
        Wall::Open => (i + 1).min(n - 1),
        Wall::Periodic => (i + 1) % n,
        Wall::Closed => i,
    }
}

#[program]
fn walled(x: &Array1<f64>, y: &mut Array1<f64>, wall: Wall, pull: Vec2<f64>) {
    let n = x.len();
    for i in par(0..n) {
        y[i] = x[neighbour(wall, i, n)] * pull.x + pull.y;
    }
}

#[test]
fn unit_enums_and_small_values_are_parameters() {
    let device = crate::cpu();
    let walled = walled().compile(&device).unwrap();
    let x = device.array(&[1.0, 2.0, 3.0]).unwrap();
    for (wall, expected) in
        [(Wall::Open, [5.0, 7.0, 7.0]), (Wall::Periodic, [5.0, 7.0, 3.0]), (Wall::Closed, [3.0, 5.0, 7.0])]
    {
        let mut y = device.zeros([3]).unwrap();
        let _ = walled.launch((&x, &mut y, wall, Vec2::new(2.0, 1.0))).unwrap();
        assert_eq!(y.to_vec(), expected);
        assert_eq!(neighbour(wall, 2, 3), [2, 0, 2][wall as usize]);
    }
}
