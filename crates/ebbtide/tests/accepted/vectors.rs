//! Halves, butterflies, trees and permutations of vectors; arrays that exchange what they hold.

use ebbtide::prelude::*;

use crate::{array, check, indices, loss};

#[program]
fn halves(x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let h = x.len() / 2;
    for i in par(0..h) {
        let a = x[i];
        let b = x[i + h];
        x[i] = a + b * b;
        x[i + h] = a * b;
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i].sin();
    }
}

#[test]
fn c57_two_halves_of_a_vector() {
    check(halves().ir().unwrap(), &[array(&[8], 1), loss()], "loss", &["x"]);
    check(halves().ir().unwrap(), &[array(&[9], 1), loss()], "x", &["x"]);
}

#[program]
fn lower_half(x: &mut Array1<f64>, h: usize, loss: &mut Array0<f64>) {
    for i in par(0..h) {
        x[i] = x[i] * 0.5;
        x[i] = x[i] + x[i + h] * x[i + h];
    }
    for i in par(0..h) {
        loss[[]] += x[i] * x[i + h];
    }
}

#[test]
fn c57_one_half_is_read_after_the_other_is_written() {
    check(lower_half().ir().unwrap(), &[array(&[8], 1), crate::size(4), loss()], "loss", &["x"]);
}

#[program]
fn butterflies(x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut h = 1;
    while h < n {
        for (b, j) in par(0..n / (2 * h), 0..h) {
            let u = x[2 * h * b + j];
            let v = x[2 * h * b + j + h];
            x[2 * h * b + j] = u + v;
            x[2 * h * b + j + h] = (u - v) * 0.5;
        }
        h *= 2;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i] * x[i];
    }
}

#[test]
fn c57_butterflies_of_growing_stride() {
    check(butterflies().ir().unwrap(), &[array(&[8], 1), loss()], "loss", &["x"]);
}

#[program]
fn folded_butterflies(x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    let mut h = 1;
    while h < n {
        for k in par(0..n / 2) {
            let i = k / h * 2 * h + k % h;
            let u = x[i];
            let v = x[i + h];
            x[i] = u + v;
            x[i + h] = (u - v) * 0.5;
        }
        h *= 2;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i] * x[i];
    }
}

#[test]
fn c57_butterflies_in_one_dimension() {
    check(folded_butterflies().ir().unwrap(), &[array(&[8], 1), loss()], "loss", &["x"]);
}

#[program]
fn tree(a: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..a.len()) {
        a[i] = a[i] * a[i];
    }
    let mut m = a.len() / 2;
    while m > 0 {
        for j in par(0..m) {
            a[j] += a[j + m];
        }
        m /= 2;
    }
    loss[[]] = a[0] * a[0];
}

#[test]
fn c57_a_sum_by_a_tree() {
    check(tree().ir().unwrap(), &[array(&[8], 1), loss()], "loss", &["a"]);
}

#[program]
fn exchanged(u: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    let mut next = Array1::<f64>::zeros([n]);
    for _t in 0..steps {
        for i in par(0..n) {
            next[i] = 0.5 * u[i] * u[(i + 1) % n] + u[i];
        }
        swap(u, next);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn c57_a_parameter_and_a_temporary_exchange_what_they_hold() {
    check(exchanged().ir().unwrap(), &[array(&[6], 1), crate::size(3), loss()], "loss", &["u"]);
}

#[program]
fn permuted(a: &Array1<f64>, b: &mut Array1<f64>, perm: &Array1<i32>, loss: &mut Array0<f64>) {
    for i in par(0..a.len()) {
        scatter_unique(b, perm[i] as usize, a[i] * b[perm[i] as usize]);
    }
    for i in par(0..b.len()) {
        loss[[]] += b[i] * b[i];
    }
}

#[test]
fn c57_what_is_scattered_uniquely_may_be_read_first() {
    let inputs = [array(&[5], 1), array(&[6], 2), indices(&[3, 0, 5, 1, 4]), loss()];
    check(permuted().ir().unwrap(), &inputs, "loss", &["a", "b"]);
}
