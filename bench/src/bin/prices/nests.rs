//! Nests of sequential loops, factors of matrices, and sums within sums.

use ebbtide::prelude::*;

#[program]
pub fn lu_loops(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
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

#[program]
pub fn lu_columns(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = a.dim(0);
    for k in 0..n {
        for i in par(k + 1..n) {
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

#[program]
pub fn lu_planes(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
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

#[program]
pub fn cholesky(a: &mut Array2<f64>, loss: &mut Array0<f64>) {
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

#[program]
pub fn thomas(
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

#[program]
pub fn gauss_seidel(f: &Array1<f64>, x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
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

#[program]
pub fn substitution(l: &Array2<f64>, x: &mut Array1<f64>, loss: &mut Array0<f64>) {
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

/// A sum whose terms hold a sum, in the body of a parallel loop.
#[program]
pub fn sum_in_sum(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut outer = 0.0;
        for j in 0..n {
            let mut inner = 0.0;
            for k in 0..n {
                inner += w[[j, k]] * x[k] * x[i];
            }
            outer += inner * inner * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// The same with `sum`.
#[program]
pub fn sum_of_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        y[i] = sum(0..n, |j| {
            let inner = sum(0..n, |k| w[[j, k]] * x[k] * x[i]);
            inner * inner * x[j]
        });
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// Sums over triangles.
#[program]
pub fn triangle_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut outer = 0.0;
        for j in 0..i {
            let mut inner = 0.0;
            for k in 0..j {
                inner += w[[j, k]] * x[k] * x[i];
            }
            outer += inner * inner * x[j];
        }
        y[i] = outer;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// Sums three deep.
#[program]
pub fn three_sums(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
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

/// A sum over two loops, without a sum between.
#[program]
pub fn double_sum(x: &Array1<f64>, w: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut s = 0.0;
        for j in 0..n {
            for k in 0..n {
                s += w[[j, k]] * x[k] * x[i] * x[j];
            }
        }
        y[i] = s;
    }
    for i in par(0..n) {
        loss[[]] += y[i] * y[i];
    }
}

/// A root for each element, found in place: nobody knows in how many iterations.
#[program]
pub fn roots(c: &Array1<f64>, x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        x[i] = 2.0 + c[i];
        while (x[i] * x[i] - 1.0 - c[i]).abs() > 1e-12 {
            x[i] -= (x[i] * x[i] - 1.0 - c[i]) / (2.0 * x[i]);
        }
    }
    for i in par(0..x.len()) {
        loss[[]] += x[i] * x[i];
    }
}

/// Rows that are relaxed in place until they hardly change.
#[program]
pub fn relaxed_rows(c: &Array2<f64>, x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for i in par(0..n) {
        for j in 0..m {
            x[[i, j]] = c[[i, j]];
        }
        let mut change = 1.0;
        while change > 1e-3 {
            change = 0.0;
            for j in 1..m - 1 {
                let old = x[[i, j]];
                x[[i, j]] = 0.5 * old + 0.25 * (x[[i, j - 1]] + x[[i, j + 1]] * x[[i, j]]);
                change += (x[[i, j]] - old).abs();
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}
