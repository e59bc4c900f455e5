//! Nests of sequential loops, at program level and in parallel bodies, with bounds that depend on loops around them.

use ebbtide::prelude::*;
use ebbtide_conformance::Input;
use ebbtide_ir::Literal;

use crate::factors::heavy;
use crate::{array, check, loss};

fn size(n: i64) -> Input {
    Input::Scalar(Literal::index(n))
}

#[program]
fn triangle(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut s = x[i];
        for j in 0..i {
            for k in j..i {
                s = s * (0.5 + 0.3 * x[k]) + 0.1 * s * s * x[j];
            }
        }
        y[i] = s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn c56_triangles_in_a_body_that_carry_a_variable() {
    check(triangle().ir().unwrap(), &[array(&[6], 1), array(&[6], 2), loss()], "loss", &["x"]);
}

#[program]
fn triangle_in_place(x: &Array1<f64>, y: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (y.dim(0), y.dim(1));
    for (i, l) in par(1..n, 0..m) {
        for j in 0..i + l {
            for k in 0..j {
                y[[i, l]] = y[[i, l]] * (0.5 + 0.3 * x[k % n]) + 0.1 * y[[i, l]] * x[j % n];
            }
            for k in j..i + 2 {
                y[[i, l]] += 0.1 * y[[i, l]] * x[k % n];
            }
        }
    }
    for (i, l) in par(0..n, 0..m) {
        loss[[]] += y[[i, l]] * y[[i, l]];
    }
}

#[test]
fn c56_triangles_in_a_body_that_rewrite_an_element() {
    let program = triangle_in_place();
    check(program.ir().unwrap(), &[array(&[4], 1), array(&[4, 3], 2), loss()], "loss", &["x", "y"]);
}

#[program]
fn substitution(l: &Array2<f64>, x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in 0..n {
        for j in 0..i {
            x[i] = x[i] - l[[i, j]] * x[j];
        }
        x[i] = x[i] / l[[i, i]];
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c56_substitution_at_program_level() {
    check(substitution().ir().unwrap(), &[heavy(5), array(&[5], 2), loss()], "loss", &["l", "x"]);
}

#[program]
fn gauss_seidel(f: &Array1<f64>, x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..steps {
        for i in 1..n - 1 {
            x[i] = 0.5 * (x[i - 1] + x[i + 1] + f[i]) - 0.1 * x[i] * x[i] * x[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c56_gauss_seidel_at_program_level() {
    let inputs = [array(&[6], 1), array(&[6], 2), size(3), loss()];
    check(gauss_seidel().ir().unwrap(), &inputs, "loss", &["f", "x"]);
}

#[program]
fn lu_in_three_loops(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in k + 1..n {
            a[[i, k]] = a[[i, k]] / a[[k, k]];
            for j in k + 1..n {
                a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
            }
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[test]
fn c56_lu_in_three_loops() {
    check(lu_in_three_loops().ir().unwrap(), &[heavy(5), loss()], "loss", &["a"]);
}

/// The factors overwrite the matrix twice, and what was there between is used.
#[program]
fn lu_twice(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for i in par(0..n) {
        loss[[]] += a[[i, 0]] * a[[0, i]];
    }
    for _t in 0..2 {
        for k in 0..n {
            for i in k + 1..n {
                a[[i, k]] = a[[i, k]] / a[[k, k]];
                for j in k + 1..n {
                    a[[i, j]] = a[[i, j]] - a[[i, k]] * a[[k, j]];
                }
            }
        }
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += a[[i, j]] * a[[i, j]];
    }
}

#[test]
fn c56_lu_in_three_loops_of_what_another_loop_left() {
    check(lu_twice().ir().unwrap(), &[heavy(4), loss()], "loss", &["a"]);
}

#[program]
fn thomas(
    a: &Array1<f64>,
    b: &Array1<f64>,
    c: &mut Array1<f64>,
    d: &mut Array1<f64>,
    loss: &mut Array0<f64>,
) {
    let n = b.len();
    c[0] = c[0] / b[0];
    d[0] = d[0] / b[0];
    for i in 1..n {
        let m = 1.0 / (b[i] - a[i] * c[i - 1]);
        c[i] = c[i] * m;
        d[i] = (d[i] - a[i] * d[i - 1]) * m;
    }
    for k in 1..n {
        let i = n - 1 - k;
        d[i] = d[i] - c[i] * d[i + 1];
    }
    for i in par(0..n) {
        loss[[]] += d[i] * d[i];
    }
}

#[test]
fn c56_thomas_at_program_level() {
    let large = Input::Elements(vec![5], (0..5).map(|k| Literal::from(3.0 + f64::from(k))).collect());
    let inputs = [array(&[5], 1), large, array(&[5], 3), array(&[5], 4), loss()];
    check(thomas().ir().unwrap(), &inputs, "loss", &["a", "b", "c", "d"]);
}

/// Rows, columns and sides that are overwritten again and again.
#[program]
fn sections(x: &mut Array2<f64>, steps: usize, row: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for k in 1..n {
            for j in par(0..m) {
                x[[k, j]] = x[[k, j]] * x[[k - 1, j]] + 0.1 * x[[row, j]];
            }
        }
        for i in par(1..n) {
            x[[i, 0]] = x[[i, 1]] * x[[i, 0]];
            x[[i, m - 1]] += x[[i, m - 2]] * x[[i, m - 1]];
            x[[i, 0]] = x[[i, 0]] * x[[i, 0]] + 0.5 * x[[i, m - 1]];
        }
        x[[0, 0]] = x[[0, 0]] * x[[1, 1]];
        for i in par(0..n) {
            loss[[]] += x[[i, i]] * x[[i, 0]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

#[test]
fn c55_sections_that_are_overwritten() {
    let inputs = [array(&[3, 4], 1), size(3), size(1), loss()];
    check(sections().ir().unwrap(), &inputs, "loss", &["x"]);
}

/// A temporary that is cleared in every step, and one that is overwritten before it is read.
#[program]
fn cleared(u: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    let mut other = Array1::zeros([n]);
    for _t in 0..steps {
        let mut sum = Array1::zeros([n]);
        for i in par(0..n) {
            sum[i] += u[i] * u[i];
        }
        for i in par(0..n) {
            other[i] = sum[i] * u[i];
        }
        for i in par(1..n) {
            u[i] = 0.5 * u[i] + 0.1 * sum[i] * other[i - 1];
        }
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn c55_temporaries_that_are_cleared() {
    check(cleared().ir().unwrap(), &[array(&[4], 1), size(3), loss()], "loss", &["u"]);
}

/// Sums three deep: what inner sums are is handed on by the passes of two loops.
#[program]
fn three_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut outer = 0.0;
        for j in 0..n {
            let mut middle = 0.0;
            for k in 0..n {
                let mut inner = 0.0;
                for l in 0..n {
                    inner += w[[k, l]] * x[l] * x[i];
                }
                middle += inner * inner * w[[j, k]];
            }
            outer += middle * middle * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn c56_sums_three_deep_in_a_body() {
    let inputs = [array(&[3], 1), array(&[3, 3], 2), array(&[3], 3), loss()];
    check(three_sums().ir().unwrap(), &inputs, "loss", &["x", "w"]);
}

/// Sums over triangles, and a sum whose loops have bounds of their own in each iteration.
#[program]
fn triangle_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(1..n) {
        let mut outer = 0.0;
        for j in 0..i {
            let mut inner = 0.0;
            for k in j..n {
                inner += w[[j, k]] * x[k] * x[i];
            }
            for k in 0..j {
                outer += inner.sin() * w[[k, i]] * x[j];
            }
            outer += inner * inner * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn c56_sums_over_triangles_in_a_body() {
    let inputs = [array(&[5], 1), array(&[5, 5], 2), array(&[5], 3), loss()];
    check(triangle_sums().ir().unwrap(), &inputs, "loss", &["x", "w"]);
}

/// Sums of steps of a loop in which the summands change.
#[program]
fn sums_in_steps(x: &mut Array1<f64>, f: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let mut outer = 0.0;
            for j in 0..n {
                let mut inner = 0.0;
                for k in 0..n {
                    inner += (x[k] * x[j]).sin() + x[i];
                }
                outer += inner / (1.0 + inner * inner) * x[j];
            }
            f[i] = outer;
        }
        for i in par(0..n) {
            x[i] += 0.1 * f[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

#[test]
fn c56_sums_within_sums_in_the_steps_of_a_loop() {
    let inputs = [array(&[4], 1), array(&[4], 2), size(3), loss()];
    check(sums_in_steps().ir().unwrap(), &inputs, "loss", &["x"]);
}
