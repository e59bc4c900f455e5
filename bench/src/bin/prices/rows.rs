//! Programs that overwrite parts of arrays: rows, slabs, sides, single elements, trajectories.

use ebbtide::prelude::*;

/// The form in place against which trajectories are held.
#[program]
pub fn in_place(u: &mut Array1<f64>, v: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(1..n - 1) {
            v[i] = u[i] + 0.2 * (u[i - 1] - u[i] * u[i + 1]);
        }
        swap(u, v);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

/// Every step is a row, from the row before.
#[program]
pub fn trajectory(x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (steps, n) = (x.dim(0) - 1, x.dim(1));
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[t + 1, i]] = x[[t, i]] + 0.2 * (x[[t, i - 1]] - x[[t, i]] * x[[t, i + 1]]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

/// Two fields on a ring in place, and as trajectories below.
#[program]
pub fn ring_in_place(
    u: &mut Array1<f64>,
    v: &mut Array1<f64>,
    a: &mut Array1<f64>,
    b: &mut Array1<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            let flow = v[(i + 2) % n] - v[(i + n - 1) % n] * u[i];
            a[i] = 0.5 * (u[i] + u[(i + 1) % n]) + 0.1 * flow;
            b[i] = v[i] - 0.1 * flow;
        }
        swap(u, a);
        swap(v, b);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * v[i];
    }
}

#[program]
pub fn ring_of_rows(u: &mut Array2<f64>, v: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let (steps, n) = (u.dim(0) - 1, u.dim(1));
    for t in 0..steps {
        for i in par(0..n) {
            let flow = v[[t, (i + 2) % n]] - v[[t, (i + n - 1) % n]] * u[[t, i]];
            u[[t + 1, i]] = 0.5 * (u[[t, i]] + u[[t, (i + 1) % n]]) + 0.1 * flow;
            v[[t + 1, i]] = v[[t, i]] - 0.1 * flow;
        }
    }
    for i in par(0..n) {
        loss[[]] += u[[steps, i]] * v[[steps, i]];
    }
}

/// A wave in place, from what it was in the two steps before, and as a trajectory below.
#[program]
pub fn wave_in_place(
    p: &mut Array2<f64>,
    q: &mut Array2<f64>,
    r: &mut Array2<f64>,
    c: &Array2<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    let (n, m) = (p.dim(0), p.dim(1));
    for _t in 0..steps {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let lap = q[[i - 1, j]] + q[[i + 1, j]] + q[[i, j - 1]] + q[[i, j + 1]] - 4.0 * q[[i, j]];
            r[[i, j]] = 2.0 * q[[i, j]] - p[[i, j]] + c[[i, j]] * c[[i, j]] * lap;
        }
        swap(p, q);
        swap(q, r);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += q[[i, j]] * q[[i, j]];
    }
}

/// Every step is a plane, from the two planes before.
#[program]
pub fn wave(p: &mut Array3<f64>, c: &Array2<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (p.dim(1), p.dim(2));
    for t in 2..p.dim(0) {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let lap =
                p[[t - 1, i - 1, j]] + p[[t - 1, i + 1, j]] + p[[t - 1, i, j - 1]] + p[[t - 1, i, j + 1]]
                    - 4.0 * p[[t - 1, i, j]];
            p[[t, i, j]] = 2.0 * p[[t - 1, i, j]] - p[[t - 2, i, j]] + c[[i, j]] * c[[i, j]] * lap;
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += p[[p.dim(0) - 1, i, j]] * p[[p.dim(0) - 1, i, j]];
    }
}

/// Rows of a flat array, each from the row before.
#[program]
pub fn flat_rows(x: &mut Array1<f64>, n: usize, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[(t + 1) * n + i] = x[t * n + i] + 0.2 * (x[t * n + i - 1] - x[t * n + i] * x[t * n + i + 1]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[steps * n + i] * x[steps * n + i];
    }
}

/// Two rows that take turns.
#[program]
pub fn two_rows(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[(t + 1) % 2, i]] =
                x[[t % 2, i]] + 0.2 * (x[[t % 2, i - 1]] - x[[t % 2, i]] * x[[t % 2, i + 1]]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps % 2, i]] * x[[steps % 2, i]];
    }
}

#[program]
pub fn hidden_markov(
    alpha: &mut Array2<f64>,
    transition: &Array2<f64>,
    emission: &Array2<f64>,
    seen: &Array1<i32>,
    loss: &mut Array0<f64>,
) {
    let n = alpha.dim(1);
    for t in 1..alpha.dim(0) {
        for j in par(0..n) {
            let mut sum = 0.0;
            for i in 0..n {
                sum += alpha[[t - 1, i]] * transition[[i, j]];
            }
            alpha[[t, j]] = sum * emission[[j, seen[t] as usize]];
        }
    }
    for j in par(0..n) {
        loss[[]] += alpha[[alpha.dim(0) - 1, j]];
    }
}

/// Two rows of halo beside a step over the plane.
#[program]
pub fn halo_rows(x: &mut Array2<f64>, y: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for j in par(0..m) {
            x[[0, j]] = x[[n - 2, j]];
            x[[n - 1, j]] = x[[1, j]];
        }
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let around = x[[i - 1, j]] + x[[i + 1, j]] + x[[i, j - 1]] + x[[i, j + 1]];
            y[[i, j]] = x[[i, j]] + 0.1 * x[[i, j]] * (around - 4.0 * x[[i, j]]);
        }
        swap(x, y);
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

/// Nothing but the rows of a halo: what is recorded is two rows.
#[program]
pub fn halo_alone(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for j in par(0..m) {
            x[[0, j]] = 0.5 * x[[n - 2, j]] * x[[0, j]];
            x[[n - 1, j]] = x[[1, j]] * x[[n - 1, j]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

/// One row in each step.
#[program]
pub fn one_row(x: &mut Array2<f64>, steps: usize, row: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for j in par(0..m) {
            x[[row, j]] = x[[row, j]] * 0.9 + 0.1 * x[[row - 1, j]] * x[[row, j]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

/// All rows, one after another, in each step.
#[program]
pub fn rows_in_turn(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m) = (x.dim(0), x.dim(1));
    for _t in 0..steps {
        for k in 1..n {
            for j in par(0..m) {
                x[[k, j]] = x[[k, j]] * x[[k - 1, j]] * 0.5 + 0.1;
            }
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += x[[i, j]] * x[[i, j]];
    }
}

/// One slab in each step.
#[program]
pub fn one_slab(x: &mut Array3<f64>, steps: usize, loss: &mut Array0<f64>) {
    let (n, m, l) = (x.dim(0), x.dim(1), x.dim(2));
    for t in 0..steps {
        for (i, j) in par(0..m, 0..l) {
            x[[t % n, i, j]] = x[[t % n, i, j]] * 0.9 + 0.1 * x[[(t + 1) % n, i, j]] * x[[t % n, i, j]];
        }
    }
    for (k, i, j) in par(0..n, 0..m, 0..l) {
        loss[[]] += x[[k, i, j]] * x[[k, i, j]];
    }
}

/// One element in each step.
#[program]
pub fn one_element(x: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.len();
    for t in 0..steps {
        x[t % n] = x[t % n] * x[(t + 1) % n] + 0.1;
    }
    for i in par(0..n) {
        loss[[]] += x[i] * x[i];
    }
}

/// Four sides beside a step over the plane.
#[program]
pub fn sides(u: &mut Array2<f64>, v: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.dim(0);
    for _t in 0..steps {
        for i in par(1..n - 1) {
            u[[0, i]] = u[[1, i]] * u[[1, i]];
            u[[n - 1, i]] = u[[n - 2, i]].sin();
            u[[i, 0]] = 0.5 * u[[i, 1]];
            u[[i, n - 1]] = u[[i, n - 2]] + u[[i, n - 1]];
        }
        for (i, j) in par(1..n - 1, 1..n - 1) {
            let around = u[[i - 1, j]] + u[[i + 1, j]] + u[[i, j - 1]] + u[[i, j + 1]];
            v[[i, j]] = u[[i, j]] + 0.1 * u[[i, j]] * (around - 4.0 * u[[i, j]]);
        }
        copy(u, v);
    }
    for (i, j) in par(0..n, 0..n) {
        loss[[]] += u[[i, j]] * u[[i, j]];
    }
}

#[program]
pub fn tree_sum(a: &mut Array1<f64>, out: &mut Array0<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = a.len();
    for _t in 0..steps {
        let mut m = n / 2;
        while m > 0 {
            for j in par(0..m) {
                a[j] += 0.5 * a[j + m] * a[j];
            }
            m = m / 2;
        }
        out[[]] += a[0];
    }
    loss[[]] += out[[]] * out[[]];
}

#[program]
pub fn levels(x: &mut Array1<f64>, n: usize, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
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
        x[0] = 0.9 * x[0] + 0.1 * x[start];
    }
    for k in par(0..x.len()) {
        loss[[]] += x[k] * x[k];
    }
}
