//! Sums of vectors, matrices and tuples, and sums inside one another.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, differentiates, shaped, zero};

fn seeded(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

#[program]
fn pulls(x: &Array1<Vec2<f64>>, w: &Array1<f64>, f: &mut Array1<Vec2<f64>>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        f[i] = sum(0..n, |j| {
            let d = x[j] - x[i];
            d * (w[j] / (0.1 + d.norm_squared()))
        });
        y[i] = sum(0..n, |j| max(0..n, |k| w[k] * x[j].x - x[i].y));
        y[i] += max(0..3, |k| sum(0..k + 1, |j| w[j] * w[i]));
        y[i] -= min(0..n, |j| {
            let mut s = 0.0;
            for k in 0..3 {
                s += w[k] * x[j].y;
            }
            s
        });
    }
}

#[test]
fn sums_of_vectors_and_extremes_inside_sums() {
    let inputs = [seeded(&[5, 2], 1), seeded(&[5], 2), shaped(&[5, 2], &[0.0; 10]), array(&[0.0; 5])];
    for of in ["f", "y"] {
        differentiates(&pulls(), &inputs, of, &["x", "w"]);
    }
}

#[program]
fn totals(x: &Array1<Vec3<f64>>, m: &Array1<Mat2<f64>>, out: &mut Array0<f64>, c: &mut Array0<Vec3<f64>>) {
    let total = sum(x);
    let all = sum(m);
    c[[]] = total / x.len() as f64;
    let moment = sum(0..x.len(), |i| x[i].outer(x[i]));
    out[[]] = total.norm() + all.determinant() + moment.trace() + dot(x, x) + norm(x);
}

#[test]
fn arrays_of_small_values_are_summed() {
    let inputs = [seeded(&[5, 3], 1), seeded(&[4, 2, 2], 2), zero(), shaped(&[3], &[0.0; 3])];
    for of in ["out", "c"] {
        differentiates(&totals(), &inputs, of, &["x", "m"]);
    }
}

#[func]
fn energy<T: Float>(x: &Array1<T>, i: usize) -> T {
    sum(0..x.len(), |j| (x[j] - x[i]).abs() * T::of(0.5))
}

#[func]
fn mean<T: Float, const N: usize>(a: [T; N]) -> T {
    sum(0..N, |k| a[k]) / T::of(N as f64)
}

#[program]
fn generic<T: Float, const N: usize>(x: &Array1<T>, y: &mut Array1<T>, v: &Array1<Vec3<T>>) {
    for i in par(0..x.len()) {
        let mut a = [T::of(0.0); N];
        for k in 0..N {
            a[k] = x[i] * T::of(k as f64) + v[i].dot(v[i]);
        }
        y[i] = mean(a) + energy(x, i) + max(0..N, |k| a[k] * x[k]);
    }
}

#[test]
fn sums_in_generic_functions() {
    let inputs = [seeded(&[5], 1), array(&[0.0; 5]), seeded(&[5, 3], 2)];
    differentiates(&generic::<f64, 4>(), &inputs, "y", &["x", "v"]);
    let x = Device::interpreter().array(&[1.0f32, 2.0, 5.0]).unwrap();
    assert_eq!(energy(&x, 0), 2.5);
    assert_eq!(mean([1.0, 2.0, 6.0]), 3.0);
}
