//! Colours, boundaries, triangles and levels of grids.

use ebbtide::prelude::*;

use crate::{array, check, loss};

#[program]
fn red_black_line(x: &mut Array1<f64>, b: &Array1<f64>, sweeps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _s in 0..sweeps {
        for c in 0..2 {
            for k in par(0..(n - 1 - c) / 2) {
                let left = x[2 * k + c];
                let right = x[2 * k + c + 2];
                x[2 * k + c + 1] = 0.5 * left * right + b[2 * k + c + 1];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c57_red_and_black_points_of_a_line() {
    let inputs = [array(&[9], 1), array(&[9], 2), crate::size(3), loss()];
    check(red_black_line().ir().unwrap(), &inputs, "loss", &["x", "b"]);
}

#[program]
fn guarded_colours(x: &mut Array1<f64>, b: &Array1<f64>, sweeps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _s in 0..sweeps {
        for c in 0..2 {
            for i in par(0..n) {
                if i > 0 && i < n - 1 && i % 2 == c {
                    x[i] = 0.5 * x[i - 1] * x[i + 1] + b[i];
                }
            }
            for i in par(0..n) {
                if i == 0 || i == n - 1 || i % 2 != c {
                    continue;
                }
                x[i] += 0.1 * x[i - 1];
            }
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c57_colours_stand_beside_other_guards() {
    let inputs = [array(&[9], 1), array(&[9], 2), crate::size(2), loss()];
    check(guarded_colours().ir().unwrap(), &inputs, "loss", &["x", "b"]);
}

#[program]
fn red_black_plane(u: &mut Array2<f64>, f: &Array2<f64>, sweeps: usize, loss: &mut Array0<f64>) {
    let n = u.dim(0);
    let m = u.dim(1);
    for _s in 0..sweeps {
        for c in 0..2 {
            for (i, j) in par(1..n - 1, 1..m - 1) {
                if (i + j) % 2 == c {
                    let sum = u[[i - 1, j]] * u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]];
                    u[[i, j]] = 0.25 * (sum - f[[i, j]]);
                }
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

#[test]
fn c57_red_and_black_points_of_a_plane() {
    let inputs = [array(&[6, 5], 1), array(&[6, 5], 2), crate::size(2), loss()];
    check(red_black_plane().ir().unwrap(), &inputs, "loss", &["u", "f"]);
}

#[program]
fn four_sides(u: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = u.dim(0);
    for _t in 0..2 {
        for i in par(1..n - 1) {
            u[[0, i]] = u[[1, i]] * u[[1, i]];
            u[[n - 1, i]] = u[[n - 2, i]].sin();
            u[[i, 0]] = 0.5 * u[[i, 1]];
            u[[i, n - 1]] = u[[i, n - 2]] + u[[i, n - 1]];
        }
        for (i, j) in par(0..n, 0..n) {
            loss[[]] += u[[i, j]] * u[[i, j]];
        }
    }
}

#[test]
fn c57_all_four_sides_of_a_boundary_in_one_loop() {
    check(four_sides().ir().unwrap(), &[array(&[5, 5], 1), loss()], "loss", &["u"]);
}

#[program]
fn mirrored(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for (i, j) in par(0..n, 0..n) {
        if j < i {
            a[[i, j]] = a[[j, i]] * a[[j, i]];
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[program]
fn mirrored_by_rows(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for i in par(0..n) {
        for j in 0..i {
            a[[i, j]] = a[[j, i]] * a[[j, i]];
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[test]
fn c57_one_triangle_is_written_from_the_other() {
    check(mirrored().ir().unwrap(), &[array(&[5, 5], 1), loss()], "loss", &["a"]);
    check(mirrored_by_rows().ir().unwrap(), &[array(&[5, 5], 1), loss()], "loss", &["a"]);
}

#[program]
fn flat_plane(x: &mut Array1<f64>, n: usize, m: usize, loss: &mut Array0<f64>) {
    for (i, j) in par(0..n, 0..m) {
        x[i * m + j] = x[i * m + j] * x[i * m + j] + 0.1;
    }
    for i in par(0..n) {
        for j in 1..m {
            x[i * m + j] = x[i * m + j] * x[i * m + j - 1];
        }
    }
    for k in par(0..n * m) {
        loss[[]] += x[k].sin();
    }
}

#[test]
fn c57_a_plane_in_a_flat_array() {
    let inputs = [array(&[12], 1), crate::size(4), crate::size(3), loss()];
    check(flat_plane().ir().unwrap(), &inputs, "loss", &["x"]);
}

#[program]
fn levels(x: &mut Array1<f64>, n: usize, loss: &mut Array0<f64>) {
    let mut start = 0;
    let mut len = n;
    while len > 1 {
        let half = len / 2;
        for i in par(0..half) {
            x[start + len + i] = 0.5 * (x[start + 2 * i] * x[start + 2 * i + 1]) + x[start + 2 * i];
        }
        start += len;
        len = half;
    }
    for k in par(0..x.len()) {
        loss[[]] += x[k] * x[k];
    }
}

#[test]
fn c57_levels_of_a_multigrid_in_one_array() {
    check(levels().ir().unwrap(), &[array(&[15], 1), crate::size(8), loss()], "loss", &["x"]);
    check(levels().ir().unwrap(), &[array(&[20], 1), crate::size(11), loss()], "loss", &["x"]);
}

/// Rows that are one or several, as the arguments say: each load finds what the last store to its row left.
#[program]
fn some_rows(
    x: &mut Array2<f64>,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for j in par(0..m) {
            x[[a, j]] = 0.5 * x[[b, j]] * x[[a, j]] + 0.1;
            x[[c, j]] = x[[d, j]] * x[[b, j]] + x[[a, j]];
            x[[d, j]] += x[[c, j]] * x[[a, j]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

#[test]
fn c57_rows_that_may_be_one() {
    for (a, b, c, d) in [(0, 1, 2, 3), (0, 0, 0, 0), (0, 1, 2, 0), (1, 0, 1, 0), (0, 1, 0, 1), (2, 3, 3, 2)] {
        let rows = [a, b, c, d].map(crate::size);
        let inputs = [vec![array(&[4, 3], 1)], rows.to_vec(), vec![crate::size(2), loss()]].concat();
        check(some_rows().ir().unwrap(), &inputs, "loss", &["x"]);
    }
}
