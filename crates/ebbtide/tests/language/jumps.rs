//! `continue`, `break`, `return`, `match`, `.rev()`, `.step_by()`.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use expect_test::expect;

use crate::{array, count, differentiates, values, zero};

fn check<P: ebbtide::__lang::Source>(program: &Program<P>, expected: expect_test::Expect) {
    program.ir().unwrap();
    expected.assert_eq(&program.to_string());
}

#[program]
fn skips(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        if i % 3 == 0 {
            continue;
        }
        let a = x[i].sin();
        if a < 0.0 {
            y[i] = -a;
            continue;
        }
        y[i] = a * x[i];
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn continue_leaves_the_rest_to_the_other_branch() {
    check(
        &skips(),
        expect![[r#"
        program skips(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
            for i in par(0..x.len()) {
                if i % 3 == 0 {
                } else {
                    let a = x[i].sin();
                    if a < 0.0 {
                        y[i] = -a;
                    } else {
                        y[i] = a * x[i];
                        loss[[]] += y[i] * y[i];
                    }
                }
            }
        }
    "#]],
    );
    let inputs = [Input::Array(vec![20], 1), Input::Array(vec![20], 2), zero()];
    differentiates(&skips(), &inputs, "loss", &["x"]);
    differentiates(&skips(), &inputs, "y", &["x", "y"]);
    let inputs = [array(&[1.0, -1.0, 2.0, 1.0, 1.0]), array(&[7.0; 5]), zero()];
    let expected = [7.0, 1f64.sin(), 2.0 * 2f64.sin(), 7.0, 1f64.sin()];
    values(&skips(), &inputs, "y").iter().zip(expected).for_each(|(y, e)| assert!((y - e).abs() < 1e-15));
}

/// Newton's method with every kind of jump in one loop.
#[program]
fn roots(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>, most: usize) {
    for i in par(0..x.len()) {
        let mut r = 1.0 + x[i] * x[i];
        for k in 0..most {
            let next = 0.5 * (r + (2.0 + x[i]) / r);
            if (next - r).abs() < 1e-3 {
                r = next;
                break;
            }
            if k % 2 == 1 {
                if next > 1.5 {
                    r = next * 0.99;
                    continue;
                }
                r = next * 1.01;
                if r > 1.4 {
                    break;
                }
            }
            r = next;
        }
        y[i] = r;
        loss[[]] += r * r;
    }
}

#[test]
fn break_and_continue_stand_where_they_stand_in_rust() {
    let plain = |x: f64, most: usize| {
        let mut r = 1.0 + x * x;
        for k in 0..most {
            let next = 0.5 * (r + (2.0 + x) / r);
            if (next - r).abs() < 1e-3 {
                r = next;
                break;
            }
            if k % 2 == 1 {
                if next > 1.5 {
                    r = next * 0.99;
                    continue;
                }
                r = next * 1.01;
                if r > 1.4 {
                    break;
                }
            }
            r = next;
        }
        r
    };
    let x = [0.3, -0.9, 0.0, 0.7, -0.2, 0.55];
    for most in [0, 1, 2, 3, 10] {
        let inputs = [array(&x), array(&[0.0; 6]), zero(), count(most)];
        assert_eq!(values(&roots(), &inputs, "y"), x.map(|x| plain(x, most)));
        differentiates(&roots(), &inputs, "loss", &["x"]);
    }
}

#[func]
fn clipped(x: f64, low: f64, high: f64) -> f64 {
    if x < low {
        return low;
    }
    if x > high {
        return high;
    }
    x
}

/// The first element above a threshold, or a sum.
#[func]
fn search(x: &Array1<f64>, from: usize, threshold: f64) -> f64 {
    let mut sum = 0.0;
    for k in from..x.len() {
        if x[k] > threshold {
            return 2.0 * x[k];
        }
        for l in 0..k {
            if x[l] * x[k] > 0.5 {
                return x[l] * x[k];
            }
            sum += x[l];
        }
    }
    sum
}

#[program]
fn functions(x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        y[i] = clipped(x[i], -0.25, 0.5) + search(x, i, 0.9);
    }
}

#[program]
fn clips(x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        y[i] = clipped(x[i], -0.25, 0.5);
    }
}

#[test]
fn early_returns_are_those_of_plain_rust() {
    check(
        &clips(),
        expect![[r#"
        program clips(x: &Array1<f64>, y: &mut Array1<f64>) {
            for i in par(0..x.len()) {
                let v3 = x[i];
                y[i] = select(v3 < -0.25, -0.25, select(v3 > 0.5, 0.5, v3));
            }
        }
    "#]],
    );
    let device = Device::interpreter();
    for seed in 0..4 {
        let inputs = [Input::Array(vec![7], seed), Input::Array(vec![7], 9)];
        let x: Vec<f64> =
            (0..7).map(|k| ebbtide_conformance::element(ebbtide::ir::Type::F64, seed, k).to_f64()).collect();
        let host = device.array(&x).unwrap();
        let expected: Vec<f64> = (0..7).map(|i| clipped(x[i], -0.25, 0.5) + search(&host, i, 0.9)).collect();
        assert_eq!(values(&functions(), &inputs, "y"), expected);
        differentiates(&functions(), &inputs, "y", &["x"]);
    }
}

/// Leaves early at program level, out of nested loops.
#[program]
fn leaves(x: &mut Array1<f64>, steps: usize, stop: usize) {
    if steps == 0 {
        return;
    }
    for t in 0..steps {
        for k in 0..3 {
            if t * 3 + k == stop {
                return;
            }
            if k == 1 {
                continue;
            }
            for i in par(0..x.len()) {
                x[i] = x[i] * 1.01 + 0.1 * x[i].sin();
            }
        }
    }
    for i in par(0..x.len()) {
        x[i] *= 2.0;
    }
}

#[test]
fn a_program_returns_early() {
    let start = [0.5, -1.0, 2.0];
    for (steps, stop) in [(0, 0), (3, 100), (3, 4), (3, 5), (2, 0)] {
        let mut expected = start;
        let mut left = steps == 0;
        'run: for t in 0..steps {
            for k in 0..3 {
                if t * 3 + k == stop {
                    left = true;
                    break 'run;
                }
                if k != 1 {
                    expected = expected.map(|x: f64| x * 1.01 + 0.1 * x.sin());
                }
            }
        }
        if !left {
            expected = expected.map(|x| x * 2.0);
        }
        let inputs = [array(&start), count(steps), count(stop)];
        let found = values(&leaves(), &inputs, "x");
        found
            .iter()
            .zip(expected)
            .for_each(|(x, e)| assert!((x - e).abs() < 1e-14, "{found:?} {expected:?}"));
        differentiates(&leaves(), &inputs, "x", &["x"]);
    }
}

const HOT: i32 = 40;

#[program]
fn kinds(kind: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let factor = match kind[i] {
            0 => 1.0,
            1 | 2 => x[i],
            -5..=-1 => x[i] * x[i],
            HOT => 40.0,
            n if n > 100 => n as f64,
            _ => 0.5,
        };
        y[i] = factor * x[i];
        match i % 4 {
            0 => continue,
            1 => y[i] += 1.0,
            k => {
                y[i] -= k as f64;
            }
        }
        y[i] *= 3.0;
    }
}

#[test]
fn match_chooses_as_in_rust() {
    let kind = [0, 1, 2, -3, -5, -6, 40, 101, 100, 7, 3];
    let x: Vec<f64> = (0..kind.len()).map(|i| 0.25 * i as f64 - 0.7).collect();
    let expected: Vec<f64> = (0..kind.len())
        .map(|i| {
            let factor = match kind[i] {
                0 => 1.0,
                1 | 2 => x[i],
                -5..=-1 => x[i] * x[i],
                HOT => 40.0,
                n if n > 100 => n as f64,
                _ => 0.5,
            };
            let y = factor * x[i];
            match i % 4 {
                0 => y,
                1 => (y + 1.0) * 3.0,
                k => (y - k as f64) * 3.0,
            }
        })
        .collect();
    let kind = Input::Elements(vec![kind.len()], kind.map(ebbtide::ir::Literal::from).to_vec());
    let inputs = [kind, array(&x), array(&vec![0.0; x.len()])];
    assert_eq!(values(&kinds(), &inputs, "y"), expected);
    differentiates(&kinds(), &inputs, "y", &["x"]);
}

/// A triangular solve, back to front, and every third element of it.
#[program]
fn strided(a: &Array1<f64>, x: &mut Array1<f64>, y: &mut Array1<f64>, step: usize) {
    let n = x.len();
    for i in (0..n).rev() {
        let mut s = x[i];
        for j in (i + 1..n).rev() {
            s -= a[(i + j) % n] * x[j];
        }
        x[i] = s * 0.5;
    }
    for i in par((1..n).step_by(3)) {
        y[i] = x[i] * x[i - 1];
    }
    for k in (0..n).step_by(step).rev() {
        y[0] = y[0] * 0.5 + x[k];
    }
    for k in (1..=n - 1).rev().step_by(step) {
        y[0] = y[0] * 0.25 + x[k];
    }
}

#[test]
fn ranges_run_backwards_and_in_steps() {
    let (n, a, x) =
        (8, [0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8], [1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, -8.0]);
    for step in [1, 2, 3, 20] {
        let (mut s, mut y) = (x, [0.0; 8]);
        for i in (0..n).rev() {
            for j in (i + 1..n).rev() {
                s[i] -= a[(i + j) % n] * s[j];
            }
            s[i] *= 0.5;
        }
        for i in (1..n).step_by(3) {
            y[i] = s[i] * s[i - 1];
        }
        for k in (0..n).step_by(step).rev() {
            y[0] = y[0] * 0.5 + s[k];
        }
        for k in (1..n).rev().step_by(step) {
            y[0] = y[0] * 0.25 + s[k];
        }
        let inputs = [array(&a), array(&x), array(&[0.0; 8]), count(step)];
        assert_eq!(values(&strided(), &inputs, "y"), y);
        differentiates(&strided(), &inputs, "y", &["a", "x"]);
    }
}

#[test]
fn a_step_of_zero_is_a_run_error() {
    let inputs = [array(&[1.0]), array(&[1.0]), array(&[0.0]), count(0)];
    let program = strided();
    let error = ebbtide_conformance::run(program.ir().unwrap(), &Device::interpreter(), &inputs).unwrap_err();
    assert!(error.to_string().contains("division by zero"), "{error}");
}
