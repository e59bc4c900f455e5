//! Every operation of vectors and matrices, of every size and both types of floats, beside plain Rust; reductions over nothing.

use ebbtide::prelude::*;
use ebbtide_conformance::{Input, run};

use crate::{array, differences_agree, differentiates, values, zero};

/// All that vectors and matrices of one size do, as one number: as plain Rust and in a program.
macro_rules! operations {
    ($name:ident, $program:ident, $float:ident, $vector:ident, $matrix:ident, $n:expr) => {
        #[func]
        fn $name(a: $vector<$float>, b: $vector<$float>, s: $float) -> $float {
            let m = a.outer(b) + $matrix::identity() * 3.0 + $matrix::diagonal(b);
            let n = (m * m.transpose() - 0.5 * m) / 1.5 + $matrix::identity() * 9.0;
            let mut v = n.inverse() * a + n.solve(b) - m * (2.0 * a) + b * s + $vector::splat(0.25);
            v += s * a;
            v -= b / 3.0;
            v *= 0.5;
            v /= 1.25;
            v[$n - 1] += v.x * v.y;
            v.x = -v.x;
            let mut w = -v;
            for k in 0..$n {
                w[k] -= n[[k, 0]] + m[k].x;
            }
            let mut square = n * n.transpose();
            square[[0, $n - 1]] += s;
            square[[$n - 1, 0]] += s;
            let root = square.cholesky();
            let rest = if v.norm() > 0.0 { v.normalize() } else { $vector::zero() };
            v.dot(w)
                + w.norm_squared()
                + n.determinant()
                + m.trace()
                + rest.y
                + root[[$n - 1, 0]]
                + (-m)[[0, 1]]
        }

        #[program]
        fn $program(
            a: &Array1<$vector<$float>>,
            b: &Array1<$vector<$float>>,
            s: $float,
            y: &mut Array1<$float>,
        ) {
            for i in par(0..y.len()) {
                y[i] = $name(a[i], b[i], s);
            }
        }
    };
}

operations!(of_two, two, f64, Vec2, Mat2, 2);
operations!(of_three, three, f64, Vec3, Mat3, 3);
operations!(of_four, four, f64, Vec4, Mat4, 4);
operations!(of_two_singles, two_singles, f32, Vec2, Mat2, 2);
operations!(of_three_singles, three_singles, f32, Vec3, Mat3, 3);
operations!(of_four_singles, four_singles, f32, Vec4, Mat4, 4);

/// Holds one size against plain Rust, bit by bit, and its derivatives against the oracle's.
macro_rules! check {
    ($name:ident, $program:ident, $float:ident, $vector:ident, $n:expr) => {{
        let inputs = [
            Input::Array(vec![3, $n], 1),
            Input::Array(vec![3, $n], 2),
            Input::Scalar((0.75 as $float).into()),
            Input::Array(vec![3], 3),
        ];
        let number = |seed: u64, k: usize| {
            let ty = ebbtide::ir::Literal::from(0.0 as $float).ty();
            ebbtide_conformance::element(ty, seed, k as u64).to_f64() as $float
        };
        let vector = |seed: u64, i: usize| {
            let mut vector = $vector::<$float>::zero();
            for k in 0..$n {
                vector[k] = number(seed, $n * i + k);
            }
            vector
        };
        let expected: Vec<f64> = (0..3).map(|i| f64::from($name(vector(1, i), vector(2, i), 0.75))).collect();
        assert_eq!(values(&$program(), &inputs, "y"), expected);
        differentiates(&$program(), &inputs, "y", &["a", "b", "s"]);
    }};
}

#[test]
fn every_operation_of_every_size_has_the_bits_of_plain_rust_and_its_derivatives() {
    check!(of_two, two, f64, Vec2, 2);
    check!(of_three, three, f64, Vec3, 3);
    check!(of_four, four, f64, Vec4, 4);
}

#[test]
fn every_operation_of_every_size_in_single_precision() {
    check!(of_two_singles, two_singles, f32, Vec2, 2);
    check!(of_three_singles, three_singles, f32, Vec3, 3);
    check!(of_four_singles, four_singles, f32, Vec4, 4);
}

/// Sums inside sums, of which some are empty: row `i` has `i` terms.
#[func]
fn triangle(x: &Array1<f64>, n: usize) -> f64 {
    sum(0..n, |i| x[i] * sum(0..i, |j| x[j] * sum(i..n, |k| (x[k] - x[j]).sin())))
}

#[program]
fn triangles(x: &Array1<f64>, loss: &mut Array0<f64>) {
    loss[[]] = triangle(x, x.len());
    for i in par(0..x.len()) {
        loss[[]] += sum(0..i, |j| x[i] * x[j] * max(j..i + 1, |k| x[k] - min(0..k + 1, |l| x[l])));
    }
}

#[test]
fn sums_nest_and_may_be_empty() {
    let x = [0.3, -0.7, 1.1, 0.2, 0.9];
    differentiates(&triangles(), &[array(&x), zero()], "loss", &["x"]);
    differences_agree(&triangles(), &[array(&x), zero()], "loss", &["x"]);
    assert_eq!(values(&triangles(), &[array(&[]), zero()], "loss"), [0.0]);
}

/// An extreme inside an iteration whose range is empty in the first one.
#[program]
fn running(x: &Array1<f64>, from: usize, y: &mut Array1<f64>) {
    for i in par(from..x.len()) {
        y[i] = max(0..i, |j| x[j]);
    }
}

#[test]
fn an_empty_extreme_inside_an_iteration_is_a_run_error() {
    let inputs = |from: usize| [array(&[1.0, 3.0, 2.0]), crate::count(from), array(&[0.0; 3])];
    assert_eq!(values(&running(), &inputs(1), "y"), [0.0, 1.0, 3.0]);
    for device in [Device::interpreter(), crate::cpu()] {
        let error = run(running().ir().unwrap(), &device, &inputs(0)).unwrap_err().to_string();
        assert!(error.contains("extreme"), "{error}");
    }
}
