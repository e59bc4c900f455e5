//! `sum`, `max`, `min`, `dot` and `norm`, of ranges and of arrays.

use ebbtide::ir::Literal;
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

/// Ranges by steps and backwards.
#[func]
fn by_steps(x: &Array1<f64>, i: usize, step: usize) -> f64 {
    let n = x.len();
    sum((i..n).step_by(2), |j| x[j] * x[i]) - sum((0..n).rev().step_by(step), |j| x[j] * (j as f64))
        + max((0..n).step_by(step), |j| x[j].sin())
        + min((0..i + 1).rev(), |j| x[j] * x[i])
}

#[program]
fn steps(x: &Array1<f64>, y: &mut Array1<f64>, step: usize) {
    let all = sum((0..x.len()).step_by(3), |j| x[j] * x[j]);
    for i in par(0..x.len()) {
        y[i] = all * by_steps(x, i, step);
    }
}

#[test]
fn reductions_over_ranges_by_steps_and_backwards_have_the_bits_of_plain_rust() {
    for (n, step) in [(1, 1), (9, 4), (37, 2)] {
        let x: Vec<f64> = (0..n)
            .map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F64, 7, k as u64).to_f64())
            .collect();
        let host = Device::interpreter().array(&x).unwrap();
        let all = sum((0..n).step_by(3), |j| x[j] * x[j]);
        let expected: Vec<f64> = (0..n).map(|i| all * by_steps(&host, i, step)).collect();
        let inputs = [array(&x), array(&vec![0.0; n]), count(step)];
        assert_eq!(values(&steps(), &inputs, "y"), expected);
        if n == 9 {
            differentiates(&steps(), &inputs, "y", &["x"]);
        }
    }
}

/// Forces between all bodies: each component by a sum of its own, which reads rows at both ends.
#[program]
fn forces<T: Float>(x: &Array2<T>, m: &Array1<T>, f: &mut Array2<T>) {
    for (i, k) in par(0..x.dim(0), 0..2) {
        f[[i, k]] += sum(0..m.len(), |j| {
            let (dx, dy) = (x[[j, 0]] - x[[i, 0]], x[[j, 1]] - x[[i, 1]]);
            let d = dx * dx + dy * dy + T::of(0.1);
            m[j] / (d * d.sqrt()) * (x[[j, k]] - x[[i, k]])
        });
    }
}

/// Sums in branches, of whole numbers, over ranges that depend on the iteration, and one that a function returns.
#[program]
fn sums_of_all_kinds(x: &Array1<f64>, at: &Array1<i32>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        if x[i] > 0.1 {
            y[i] = sum(i..n, |j| if x[j] > 0.0 { x[j] * x[i] } else { x[at[j] as usize].exp() });
        } else {
            let many = sum(0..i, |j| at[j]);
            y[i] = energy(x, i, 2) + many as f64 * x[i];
        }
        let places = sum(0..n, |j| if at[j] > 2 { j } else { 0 });
        y[i] += x[places % n];
    }
}

#[test]
fn sums_inside_iterations_have_derivatives() {
    let inputs = [Input::Array(vec![7, 2], 1), Input::Array(vec![7], 2), Input::Array(vec![7, 2], 3)];
    values(&forces::<f64>(), &inputs, "f");
    differentiates(&forces::<f64>(), &inputs, "f", &["x", "m"]);
    differentiates(&forces::<f32>(), &inputs, "f", &["x", "m"]);
    let n = 37;
    let at: Vec<i32> = (0..n).map(|k| k * 5 % 7).collect();
    let inputs = [
        Input::Array(vec![n as usize], 4),
        Input::Elements(vec![n as usize], at.into_iter().map(Literal::from).collect()),
        Input::Array(vec![n as usize], 3),
    ];
    values(&sums_of_all_kinds(), &inputs, "y");
    differentiates(&sums_of_all_kinds(), &inputs, "y", &["x"]);
}

#[program]
fn long_sums(x: &Array1<f32>, y: &mut Array1<f32>, n: usize) {
    for i in par(0..y.len()) {
        y[i] = sum(i..n, |j| x[j] * x[i]);
    }
}

#[test]
fn a_sum_inside_an_iteration_may_have_many_leaves() {
    for n in [1023, 1024, 1030, 9000] {
        let x: Vec<f32> = (0..n)
            .map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F32, 5, k as u64).to_f64() as f32)
            .collect();
        let inputs = [Input::Array(vec![n], 5), Input::Array(vec![3], 1), count(n)];
        let found = values(&long_sums(), &inputs, "y");
        for (i, found) in found.into_iter().enumerate() {
            assert_eq!(found, f64::from(sum(i..n, |j| x[j] * x[i])), "{n}");
        }
    }
}

#[test]
#[ignore = "needs CUDA"]
fn sums_inside_iterations_have_the_same_bits_on_cuda() {
    let seeded = |shape: &[usize], seed| Input::Array(shape.to_vec(), seed);
    // One block, several, and more iterations than threads; a wrong place in one lane is an error, and nobody waits.
    for blocks in [0, 1, 3] {
        let options = ebbtide_cuda::Options::new();
        let (cuda, _) = if blocks == 0 { options } else { options.blocks(blocks) }.build().unwrap();
        let agree = |program: &ebbtide::ir::Program, inputs: &[Input]| {
            let [expected, found] = [&Device::interpreter(), &cuda]
                .map(|device| ebbtide_conformance::run(program, device, inputs).map_err(|e| e.to_string()));
            assert_eq!(expected, found, "{blocks} blocks\n{program}");
            expected
        };
        for n in [1, 7, 40, 300] {
            let inputs = [seeded(&[n, 2], 1), seeded(&[n], 2), seeded(&[n, 2], 3)];
            agree(forces::<f64>().ir().unwrap(), &inputs).unwrap();
            agree(forces::<f32>().ir().unwrap(), &inputs).unwrap();
        }
        let inputs = [seeded(&[30_000, 2], 1), seeded(&[5], 2), seeded(&[30_000, 2], 3)];
        agree(forces::<f32>().ir().unwrap(), &inputs).unwrap();
        for (n, wrong) in [(37, false), (37, true)] {
            let at: Vec<i32> = (0..n).map(|k| if wrong && k == 20 { -1 } else { k * 5 % 7 }).collect();
            let n = n as usize;
            let at = Input::Elements(vec![n], at.into_iter().map(Literal::from).collect());
            let found = agree(sums_of_all_kinds().ir().unwrap(), &[seeded(&[n], 4), at, seeded(&[n], 3)]);
            assert_eq!(found.is_err(), wrong);
        }
        let inputs = [seeded(&[9000], 5), seeded(&[3], 1), count(9000)];
        agree(long_sums().ir().unwrap(), &inputs).unwrap();
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
    for n in [0, 1, 15, 16, 17, 100, 1024, 1025, 10_000] {
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
