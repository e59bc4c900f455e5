//! `sum`, `max`, `min`, `dot` and `norm`, of ranges and of arrays.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, count, differentiates, values, zero};

/// Pairs of everything with everything, two sums deep.
#[func]
fn energy(x: &Array1<f64>, i: usize, few: usize) -> f64 {
    let near = sum(0..few, |k| x[k] * x[i]);
    let far = sum(0..x.len(), |j| {
        let d = x[i] - x[j];
        d * d * sum(0..3, |k| x[k] + d)
    });
    far + near * max(0..x.len(), |j| x[j].abs()) - min(i..i + 2, |j| x[j % few] * x[i])
}

#[program]
fn energies(x: &Array1<f64>, y: &mut Array1<f64>, few: usize) {
    for i in par(0..x.len()) {
        y[i] = energy(x, i, few);
    }
}

#[test]
fn reductions_inside_an_iteration_have_the_bits_of_plain_rust() {
    for (n, few) in [(3, 1), (17, 3), (40, 16), (33, 33)] {
        let x: Vec<f64> = (0..n)
            .map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F64, 5, k as u64).to_f64())
            .collect();
        let host = Device::interpreter().array(&x).unwrap();
        let expected: Vec<f64> = (0..n).map(|i| energy(&host, i, few)).collect();
        let inputs = [array(&x), array(&vec![0.0; n]), count(few)];
        assert_eq!(values(&energies(), &inputs, "y"), expected);
        if n < 20 {
            differentiates(&energies(), &inputs, "y", &["x"]);
        }
    }
}

#[program]
fn both_ways(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    y[0] = sum(0..x.len(), |j| x[j]);
    y[1] = sum(x);
    for i in par(0..x.len()) {
        loss[[]] += x[i];
    }
    y[2] = loss[[]];
    y[3] = sum(x.len()..x.len(), |j| x[j]);
}

#[test]
fn a_sum_has_the_order_of_a_parallel_loop_of_its_extent() {
    for n in [0, 1, 15, 16, 17, 100, 4096, 4097, 10_000] {
        let found = values(&both_ways(), &[Input::Array(vec![n], 3), Input::Array(vec![4], 1), zero()], "y");
        let bits: Vec<u64> = found.iter().map(|y| y.to_bits()).collect();
        assert!(bits[0] == bits[1] && bits[1] == bits[2], "{n}: {found:?}");
        assert_eq!(bits[3], 0, "an empty sum is zero");
        let x: Vec<f64> = (0..n)
            .map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F64, 3, k as u64).to_f64())
            .collect();
        assert_eq!(sum(0..n, |j| x[j]).to_bits(), bits[0]);
    }
    // Where the order shows: a chain of additions has other bits.
    let x: Vec<f64> =
        (0..10_000).map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F64, 3, k).to_f64()).collect();
    assert_ne!(sum(0..10_000, |j| x[j]), x.iter().sum::<f64>());
}

/// Steps of steepest descent with a step that the whole field decides.
#[program]
fn descent(x: &mut Array2<f64>, b: &Array2<f64>, y: &mut Array1<f64>, steps: usize) {
    for _t in 0..steps {
        let length = norm(x);
        let along = dot(x, b);
        let most = max(x);
        let least = min(b);
        for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
            x[[i, j]] = x[[i, j]] / (1.0 + length) + 0.1 * along * b[[i, j]] + 0.01 * most - least;
        }
    }
    y[0] = sum(x);
    y[1] = norm(x) * max(x);
}

#[test]
fn reductions_of_arrays_are_scalars_with_derivatives() {
    let inputs =
        [Input::Array(vec![3, 5], 1), Input::Array(vec![3, 5], 2), Input::Array(vec![2], 3), count(3)];
    values(&descent(), &inputs, "y");
    differentiates(&descent(), &inputs, "y", &["x", "b"]);
}

#[test]
fn an_empty_extreme_is_a_run_error() {
    let inputs =
        [Input::Array(vec![0, 5], 1), Input::Array(vec![0, 5], 2), Input::Array(vec![2], 3), count(1)];
    for device in [Device::interpreter(), crate::cpu()] {
        let error =
            ebbtide_conformance::run(descent().ir().unwrap(), &device, &inputs).unwrap_err().to_string();
        assert!(error.contains("an empty array has no extreme"), "{error}");
    }
}
