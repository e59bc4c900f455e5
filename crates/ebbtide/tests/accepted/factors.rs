//! Factors of matrices, column by column.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use ebbtide_ir::Literal;

use crate::{check, loss};

/// A symmetric matrix with a heavy diagonal.
pub fn heavy(n: usize) -> Input {
    let element = |k: usize| {
        let (i, j) = (k / n, k % n);
        let small = 0.3 + 0.1 * ((i * j) as f64 * 0.7 + (i + j) as f64).sin();
        if i == j { 3.0 + small } else { small }
    };
    Input::Elements(vec![n, n], (0..n * n).map(|k| Literal::from(element(k))).collect())
}

#[program]
fn lu(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in par(k + 1..n) {
            a[[i, k]] = a[[i, k]] / a[[k, k]];
            for j in k + 1..n {
                a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += a[[i, i]].ln();
    }
}

#[test]
fn c57_lu_column_by_column() {
    check(lu().ir().unwrap(), &[heavy(5), loss()], "loss", &["a"]);
}

#[program]
fn lu_plane(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in par(k + 1..n) {
            a[[i, k]] = a[[i, k]] / a[[k, k]];
        }
        for (i, j) in par(k + 1..n, k + 1..n) {
            a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[test]
fn c57_lu_plane_by_plane() {
    check(lu_plane().ir().unwrap(), &[heavy(4), loss()], "loss", &["a"]);
}

#[program]
fn cholesky(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for j in 0..n {
        for k in 0..j {
            a[[j, j]] = a[[j, j]] - a[[j, k]] * a[[j, k]];
        }
        a[[j, j]] = a[[j, j]].sqrt();
        for i in par(j + 1..n) {
            let mut s = a[[i, j]];
            for k in 0..j {
                s -= a[[i, k]] * a[[j, k]];
            }
            a[[i, j]] = s / a[[j, j]];
        }
    }
    for i in par(0..n) {
        loss[[]] += a[[i, i]].ln();
    }
}

#[test]
fn c57_cholesky_column_by_column() {
    check(cholesky().ir().unwrap(), &[heavy(4), loss()], "loss", &["a"]);
}

/// Rows and columns of a matrix that the loop also overwrites, in steps, with one more variable than they have.
#[program]
fn rank_one_updates(a: &mut Array3<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m, l) = (a.dim(0), a.dim(1), a.dim(2));
    for _t in 0..steps {
        for k in 0..2 {
            for (i, j, q) in par(k + 1..n, k + 1..m, 0..l) {
                a[[i, j, q]] = a[[i, j, q]] * a[[k, j, q]] + a[[i, k, 0]] * a[[k, k, q]] + 0.1;
            }
        }
    }
    for (i, j, q) in par(0..n, 0..m, 0..l) {
        loss[[]] += a[[i, j, q]] * a[[i, j, q]];
    }
}

#[test]
fn c57_rows_and_columns_of_what_a_loop_overwrites() {
    for shape in [[3, 4, 2], [4, 2, 3], [2, 2, 1]] {
        let inputs = [crate::array(&shape, 1), crate::size(2), loss()];
        check(rank_one_updates().ir().unwrap(), &inputs, "loss", &["a"]);
    }
}
