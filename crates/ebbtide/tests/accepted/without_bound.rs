//! Iterations that read what they wrote, in inner loops whose number of iterations is data.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_ir::Literal;
use ebbtide_runtime::{Budget, interpreter};

use crate::{array, check, indices, loss};

#[program]
fn newton(c: &Array1<f64>, x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        x[i] = 1.0 + x[i] * x[i];
        while (x[i] * x[i] - 0.5 - c[i] * c[i]).abs() > 1e-3 {
            x[i] -= (x[i] * x[i] - 0.5 - c[i] * c[i]) / (2.0 * x[i]);
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i] * x[i];
    }
}

#[test]
fn c56_a_root_is_found_in_place() {
    check(newton().ir().unwrap(), &[array(&[7], 1), array(&[7], 2), loss()], "loss", &["c", "x"]);
}

#[program]
fn sort(x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for i in par(0..n) {
        for j in 1..m {
            let v = x[[i, j]];
            let mut k = j;
            while k > 0 && x[[i, k - 1]] > v {
                x[[i, k]] = x[[i, k - 1]];
                k = k - 1;
            }
            x[[i, k]] = v;
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]] * (j as f64);
    }
}

#[test]
fn c56_rows_are_sorted() {
    check(sort().ir().unwrap(), &[array(&[3, 6], 1), loss()], "loss", &["x"]);
}

#[program]
fn sweeps(count: &Array1<i32>, x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for i in par(0..n) {
        for _t in 0..count[i] as usize {
            for j in 1..m - 1 {
                x[[i, j]] = 0.5 * x[[i, j]] + 0.25 * x[[i, j - 1]] * x[[i, j + 1]];
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]] * (j as f64);
    }
}

#[test]
fn c56_rows_have_sweeps_of_their_own() {
    check(sweeps().ir().unwrap(), &[indices(&[2, 0, 3]), array(&[3, 6], 1), loss()], "loss", &["x"]);
}

/// More values are found than an iteration keeps: it is run again for the others.
#[test]
fn c56_a_few_of_many_rows_have_many_sweeps() {
    let mut count = vec![0; 1100];
    (count[7], count[1000]) = (30, 41);
    check(sweeps().ir().unwrap(), &[indices(&count), array(&[1100, 6], 1), loss()], "loss", &["x"]);
}

#[program]
fn relaxation(x: &mut Array2<f32>, loss: &mut Array0<f32>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for i in par(0..n) {
        let mut change = 1.0f32;
        while change > 0.1 {
            change = 0.0;
            for j in 1..m - 1 {
                let old = x[[i, j]];
                x[[i, j]] = 0.5 * x[[i, j]] + 0.25 * x[[i, j - 1]] * x[[i, j + 1]];
                change += (x[[i, j]] - old).abs();
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]] * (j as f32);
    }
}

#[test]
fn c56_rows_are_relaxed_until_nothing_changes() {
    check(relaxation().ir().unwrap(), &[array(&[3, 6], 1), loss()], "loss", &["x"]);
}

#[program]
fn stack(x: &Array1<f64>, s: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut top = 0;
        let mut v = 0.2 + x[i] * x[i];
        while v > 0.1 && top < 8 {
            s[[i, top]] = v;
            v *= 0.6;
            top += 1;
        }
        let mut sum = 0.0;
        while top > 0 {
            top -= 1;
            sum = sum * s[[i, top]] + s[[i, top]];
        }
        s[[i, 0]] = sum;
    }
    for i in par(0..x.len()) {
        loss[[]] += s[[i, 0]] * s[[i, 0]];
    }
}

#[test]
fn c56_a_stack_in_an_array() {
    check(stack().ir().unwrap(), &[array(&[5], 1), array(&[5, 9], 2), loss()], "loss", &["x"]);
}

#[program]
fn active(count: &Array0<i32>, x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..count[[]] as usize) {
        for k in 0..3 {
            x[[i, k]] = x[[i, k]] * 0.9 + 0.1 * x[[i, (k + 1) % 3]];
        }
    }
    for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, k]] * x[[i, k]];
    }
}

/// An array that all iterations go through bounds a loop over as many elements as are in use.
#[test]
fn c56_a_loop_over_the_elements_in_use() {
    let count = Input::Elements(vec![], vec![Literal::from(3i32)]);
    check(active().ir().unwrap(), &[count, array(&[5, 3], 1), loss()], "loss", &["x"]);
}

#[program]
fn doubtful(used: &Array0<i32>, c: &Array1<f64>, x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..used[[]] as usize) {
        if i % 2 == 0 {
            let mut v = 1.0;
            while x[i] > 0.5 {
                v *= 0.9;
                x[i] = v * c[i];
            }
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

/// Nothing bounds the loop, and what the head of the inner one found is gone when it runs again.
#[test]
fn a_head_that_reads_what_its_loop_wrote_is_refused_where_nothing_is_kept() {
    let error = doubtful().grad(doubtful::loss).wrt(doubtful::c).ir().unwrap_err().to_string();
    assert!(
        error.contains("whose number of iterations is data, and that reads `x` after writing it"),
        "{error}"
    );
}

#[program]
fn adaptive(k: &Array1<f64>, y: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..k.len()) {
        let mut t = 0.0;
        let mut h = 0.1;
        while t < 1.0 {
            let step = h.min(1.0 - t);
            let pull = -(1.0 + k[i] * k[i]) * y[[i, 0]];
            if (step * step * pull).abs() < 0.02 || step < 1e-3 {
                y[[i, 0]] += step * y[[i, 1]];
                y[[i, 1]] += step * pull;
                t += step;
                h *= 1.5;
            } else {
                h *= 0.5;
            }
        }
    }
    for i in par(0..k.len()) {
        loss[[]] += y[[i, 0]] * y[[i, 0]] + y[[i, 1]];
    }
}

#[test]
fn c56_steps_of_their_own_in_place() {
    check(adaptive().ir().unwrap(), &[array(&[4], 1), array(&[4, 2], 2), loss()], "loss", &["k", "y"]);
}

#[program]
fn four(x: &mut Array4<f64>, loss: &mut Array0<f64>) {
    let (n, m, p, q) = (x.dim(0), x.dim(1), x.dim(2), x.dim(3));
    for (i, j, k, l) in par(0..n, 0..m, 0..p, 0..q / 2) {
        while x[[i, j, k, 2 * l]] > 0.2 {
            x[[i, j, k, 2 * l]] = x[[i, j, k, 2 * l]] * 0.5;
            x[[i, j, k, 2 * l + 1]] += x[[i, j, k, 2 * l]] * x[[i, j, k, 2 * l + 1]];
        }
    }
    for (i, j, k, l) in par(0..n, 0..m, 0..p, 0..q) {
        loss[[]] += x[[i, j, k, l]] * x[[i, j, k, l]];
    }
}

#[test]
fn c56_iterations_in_four_dimensions() {
    check(four().ir().unwrap(), &[array(&[2, 2, 2, 4], 1), loss()], "loss", &["x"]);
}

#[test]
#[ignore = "needs CUDA"]
fn c56_iterations_without_a_bound_have_the_same_gradient_on_cuda() {
    let (cuda, _) = ebbtide_cuda::Options::new().build().unwrap();
    let mut count = vec![0; 1100];
    (count[7], count[1000]) = (30, 41);
    let rows = [indices(&count), array(&[1100, 6], 1), loss()];
    let (sort, sweeps, newton) = (sort(), sweeps(), newton());
    for (program, inputs, wrt) in [
        (sort.ir().unwrap(), &[array(&[300, 16], 1), loss()][..], &["x"][..]),
        (sweeps.ir().unwrap(), &rows, &["x"]),
        (newton.ir().unwrap(), &[array(&[700], 1), array(&[700], 2), loss()], &["c", "x"]),
    ] {
        let question = Question::new(program, inputs, "loss", wrt);
        let [expected, found] = [&interpreter(), &cuda].map(|device| {
            let gradient = question.gradient(device, false).unwrap();
            gradient.launch(&question, Budget::StoreAll).unwrap().derivatives
        });
        assert_eq!(expected, found, "{program}");
    }
}
