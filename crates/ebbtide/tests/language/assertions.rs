//! Assertions: what they say where they do not hold, in every form of an iteration.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;

use crate::{array, count, cpu, differentiates, shaped, values};

/// The words of a fault on the interpreter and on the CPU.
fn faults<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input]) -> [String; 2] {
    [Device::interpreter(), cpu()].map(|device| {
        ebbtide_conformance::run(program.ir().unwrap(), &device, inputs).unwrap_err().to_string()
    })
}

#[program]
fn asserts(x: &Array1<f64>, y: &mut Array1<f64>) {
    assert!(x.len() > 2, "three elements are needed");
    for i in par(0..x.len()) {
        assert!(x[i] > 0.0, "densities are positive");
        y[i] = x[i].sqrt();
    }
}

#[test]
fn a_failed_assertion_is_a_run_error_with_its_text_and_line() {
    let good = [array(&[1.0, 4.0, 9.0]), array(&[0.0; 3])];
    assert_eq!(values(&asserts(), &good, "y"), [1.0, 2.0, 3.0]);
    differentiates(&asserts(), &good, "y", &["x"]);
    for device in [Device::interpreter(), cpu()] {
        for (x, text) in [(vec![1.0, -4.0, 9.0], "densities are positive"), (vec![1.0], "three elements")] {
            let inputs = [array(&x), array(&vec![0.0; x.len()])];
            let error = ebbtide_conformance::run(asserts().ir().unwrap(), &device, &inputs).unwrap_err();
            let error = error.to_string();
            assert!(error.contains(text) && error.contains("assertions.rs:"), "{error}");
        }
    }
}

#[program]
fn in_loops(x: &Array2<f64>, y: &mut Array2<f64>, steps: usize, bad: usize) {
    for t in 0..steps {
        for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
            assert!(t + i + j != bad || x[[i, j]] > 0.0, "densities are positive");
            y[[i, j]] += x[[i, j]] * t as f64;
        }
    }
}

#[test]
fn an_assertion_says_in_which_pass_and_iteration_it_does_not_hold() {
    let mut x = vec![1.0; 40 * 70];
    x[23 * 70 + 41] = -1.0;
    let inputs = [shaped(&[40, 70], &x), shaped(&[40, 70], &vec![0.0; 40 * 70]), count(9), count(71)];
    for error in faults(&in_loops(), &inputs) {
        assert!(error.contains("densities are positive, in in_loops/for t=7/par i=23 j=41, at "), "{error}");
    }
}

#[program]
fn in_short_rows(x: &Array2<f64>, y: &mut Array2<f64>) {
    for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
        assert!(x[[i, k]] > 0.0, "densities are positive");
        y[[i, k]] = x[[i, k]].sqrt();
    }
}

#[test]
fn an_assertion_says_in_which_of_many_short_rows_it_does_not_hold() {
    let mut x = vec![1.0; 50 * 3];
    x[23 * 3 + 1] = -1.0;
    for error in faults(&in_short_rows(), &[shaped(&[50, 3], &x), shaped(&[50, 3], &[0.0; 150])]) {
        assert!(error.contains("in in_short_rows/par i=23 k=1, at "), "{error}");
    }
}

#[program]
fn at_program_level(x: &mut Array1<f64>, most: f64, steps: usize) {
    for t in 0..steps {
        loop {
            x[t] *= 2.0;
            assert!(x[t] < most, "growth is bounded");
            if x[t] > 1.0 {
                break;
            }
        }
    }
}

#[program]
fn in_a_row(x: &Array2<f64>, weights: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        for k in 0..weights.len() {
            assert!(weights[k] >= 0.0, "weights are not negative");
            y[i] += weights[k] * x[[k, i]];
        }
    }
}

#[func]
fn root(x: f64) -> f64 {
    assert!(x >= 0.0, "roots are real");
    x.sqrt()
}

#[program]
fn in_terms(x: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        y[i] = sum(0..x.dim(0), |k| root(x[[k, i]]));
    }
}

#[program]
fn in_a_sum(x: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..y.len()) {
        let mut found = 0.0;
        for k in 0..x.dim(0) {
            if i % 3 == 0 {
                assert!(x[[k, i]] >= 0.0, "terms are not negative");
            }
            found += x[[k, i]];
        }
        y[i] = found;
    }
}

#[test]
fn an_assertion_inside_an_iteration_says_in_which_pass() {
    for (n, m) in [(3, 5), (40, 5), (300, 7), (5000, 3)] {
        let mut weights = vec![1.0; m];
        weights[m - 1] = -1.0;
        let x: Vec<f64> = (0..n * m).map(|k| weights[k / n]).collect();
        let (y, pass) = (array(&vec![0.0; n]), format!("/for k={}", m - 1));
        for error in faults(&in_a_row(), &[shaped(&[m, n], &vec![1.0; n * m]), array(&weights), y.clone()]) {
            assert!(
                error.contains("in in_a_row/par i=") && error.contains(&format!("{pass}, at ")),
                "{error}"
            );
        }
        for error in faults(&in_terms(), &[shaped(&[m, n], &x), y.clone()]) {
            assert!(error.contains("roots are real, in in_terms/par i=") && error.contains(&pass), "{error}");
        }
        for error in faults(&in_a_sum(), &[shaped(&[m, n], &x), y]) {
            assert!(error.contains("in in_a_sum/par i=") && error.contains(&pass), "{error}");
        }
    }
}

#[test]
fn an_assertion_outside_parallel_loops_says_how_often_they_ran() {
    let inputs =
        |most: f64| [array(&[0.3, 0.7, 0.1]), Input::Scalar(ebbtide::ir::Literal::from(most)), count(3)];
    for error in faults(&at_program_level(), &inputs(1.5)) {
        assert!(error.contains("growth is bounded, in at_program_level/for t=2/loop=3, at "), "{error}");
    }
    let _ = values(&at_program_level(), &inputs(2.0), "x");
}

/// One element of all is wrong: every device finds it.
#[test]
#[ignore = "needs CUDA"]
fn a_failed_assertion_says_the_same_on_cuda() {
    let cuda = ebbtide_cuda::Options::new().build().unwrap().0;
    let agree = |program: &ebbtide::ir::Program, inputs: &[Input]| {
        let [expected, found] = [&Device::interpreter(), &cuda]
            .map(|device| ebbtide_conformance::run(program, device, inputs).unwrap_err().to_string());
        assert_eq!(expected, found, "{program}");
    };
    let mut x = vec![1.0; 40 * 70];
    x[23 * 70 + 41] = -1.0;
    let inputs = [shaped(&[40, 70], &x), shaped(&[40, 70], &vec![0.0; 40 * 70]), count(9), count(71)];
    agree(in_loops().ir().unwrap(), &inputs);
    agree(in_short_rows().ir().unwrap(), &inputs[..2]);
    agree(in_terms().ir().unwrap(), &[inputs[0].clone(), array(&[0.0; 70])]);
    let most = Input::Scalar(ebbtide::ir::Literal::from(1.5));
    agree(at_program_level().ir().unwrap(), &[array(&[0.3, 0.7, 0.1]), most, count(3)]);
}
