//! Bodies of parallel loops with inner loops whose length is data, and with minima and maxima beside other uses.

use ebbtide::prelude::*;

use crate::{array, check, indices, loss, size};

/// Sweeps along a row until it has settled, at most so often: reads what the same iteration wrote.
#[program]
fn relaxed_rows(x: &mut Array2<f64>, most: usize, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(0)) {
        let mut k = 0;
        while k < most && x[[i, 1]] < 3.0 {
            for j in 1..x.dim(1) {
                x[[i, j]] = 0.6 * x[[i, j]] + 0.5 * x[[i, j - 1]].sin() + 0.3;
            }
            k += 1;
        }
    }
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

#[test]
fn c56_a_while_loop_that_counts_has_a_gradient() {
    for most in [0, 1, 4] {
        check(relaxed_rows().ir().unwrap(), &[array(&[3, 4], 1), size(most), loss()], "loss", &["x"]);
    }
}

/// Leaves an inner loop early.
#[program]
fn until_large(x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(0)) {
        for j in 1..x.dim(1) {
            x[[i, j]] += x[[i, j - 1]] * x[[i, j - 1]];
            if x[[i, j]] > 0.9 {
                break;
            }
        }
    }
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, j]].sin();
    }
}

#[test]
fn c56_a_loop_that_breaks_after_reading_what_it_wrote_has_a_gradient() {
    check(until_large().ir().unwrap(), &[array(&[4, 6], 3), loss()], "loss", &["x"]);
}

/// The length of the inner loop is data, below a bound that is none.
#[program]
fn some_terms(x: &mut Array2<f64>, count: &Array1<i32>, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(0)) {
        for j in 0..(count[i] as usize).min(x.dim(1) - 1) {
            x[[i, j + 1]] = x[[i, j + 1]] * x[[i, j]] + 0.5;
        }
    }
    for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, j]] * 0.7;
    }
}

#[test]
fn c56_a_loop_whose_length_is_data_below_a_bound_has_a_gradient() {
    let inputs = [array(&[4, 5], 2), indices(&[0, 2, 9, 3]), loss()];
    check(some_terms().ir().unwrap(), &inputs, "loss", &["x"]);
}

/// A maximum of elements that no other iteration has, read again in the same loop.
#[program]
fn peaks(x: &mut Array1<f64>, y: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        x[i] = x[i] * 0.8;
        x[i].max_assign(y[i] * y[i]);
        x[i].min_assign(0.7);
        loss[[]] += x[i] * y[i];
    }
}

#[test]
fn c56_extremes_of_own_elements_may_be_used_in_the_same_loop() {
    check(peaks().ir().unwrap(), &[array(&[7], 1), array(&[7], 2), loss()], "loss", &["x", "y"]);
}

/// A shared maximum in a loop that reads what it wrote.
#[program]
fn highest(x: &mut Array2<f64>, top: &mut Array0<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.dim(0)) {
        for j in 1..x.dim(1) {
            x[[i, j]] = 0.5 * x[[i, j]] + x[[i, j - 1]] * x[[i, j - 1]];
        }
        top[[]].max_assign(x[[i, x.dim(1) - 1]]);
    }
    loss[[]] += top[[]] * top[[]];
}

#[test]
fn c56_a_shared_maximum_of_what_a_loop_wrote_has_a_jvp_and_an_hvp() {
    let inputs = [array(&[5, 4], 1), loss(), loss()];
    check(highest().ir().unwrap(), &inputs, "loss", &["x"]);
}
