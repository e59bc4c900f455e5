//! Loops that write one row of an array and read others.

use ebbtide::prelude::*;

use crate::{array, check, indices, loss};

#[program]
fn neighbours(x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let steps = x.dim(0) - 1;
    let n = x.dim(1);
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[t + 1, i]] = x[[t, i]] + 0.2 * (x[[t, i - 1]] - x[[t, i]] * x[[t, i + 1]]);
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps, i]] * x[[steps, i]];
    }
}

#[test]
fn c57_a_row_is_written_from_the_neighbours_in_the_row_before() {
    check(neighbours().ir().unwrap(), &[array(&[6, 9], 1), loss()], "loss", &["x"]);
    check(neighbours().ir().unwrap(), &[array(&[6, 9], 1), loss()], "x", &["x"]);
}

#[program]
fn wave(p: &mut Array3<f64>, c: &Array2<f64>, loss: &mut Array0<f64>) {
    let n = p.dim(1);
    let m = p.dim(2);
    for t in 2..p.dim(0) {
        for (i, j) in par(1..n - 1, 1..m - 1) {
            let lap =
                p[[t - 1, i - 1, j]] + p[[t - 1, i + 1, j]] + p[[t - 1, i, j - 1]] + p[[t - 1, i, j + 1]]
                    - 4.0 * p[[t - 1, i, j]];
            p[[t, i, j]] = 2.0 * p[[t - 1, i, j]] - p[[t - 2, i, j]] + c[[i, j]] * c[[i, j]] * lap;
        }
        for (i, j) in par(0..n, 0..m) {
            loss[[]] += p[[t, i, j]] * p[[t, i, j]];
        }
    }
}

#[test]
fn c57_a_wave_keeps_its_history() {
    let inputs = [array(&[5, 6, 5], 1), array(&[6, 5], 2), loss()];
    check(wave().ir().unwrap(), &inputs, "loss", &["p", "c"]);
}

#[program]
fn columns(x: &mut Array2<f64>, from: &Array1<i32>, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 1..x.dim(0) {
        for i in par(0..n) {
            let right = x[[t - 1, (i + 1).min(n - 1)]];
            x[[t, i]] = x[[t - 1, from[i] as usize]] * right + 0.5 * x[[t - 1, i]];
        }
    }
    for (t, i) in par(0..x.dim(0), 0..n) {
        loss[[]] += x[[t, i]].sin();
    }
}

#[test]
fn c57_columns_of_the_row_before_are_data_or_clamped() {
    let inputs = [array(&[4, 6], 1), indices(&[3, 3, 0, 5, 1, 1]), loss()];
    check(columns().ir().unwrap(), &inputs, "loss", &["x"]);
}

#[program]
fn recurrent(x: &mut Array2<f64>, w: &Array2<f64>, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 0..x.dim(0) - 1 {
        for i in par(0..n) {
            let mut s = 0.0;
            for j in 0..n {
                s += w[[i, j]] * x[[t, j]];
            }
            x[[t + 1, i]] = s.tanh();
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[x.dim(0) - 1, i]];
    }
}

#[test]
fn c57_each_state_of_a_recurrent_net_is_a_row() {
    let inputs = [array(&[5, 4], 1), array(&[4, 4], 2), loss()];
    check(recurrent().ir().unwrap(), &inputs, "loss", &["x", "w"]);
}

#[program]
fn hidden_markov(
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

#[test]
fn c57_the_forward_pass_of_a_hidden_markov_model() {
    let inputs = [array(&[5, 3], 1), array(&[3, 3], 2), array(&[3, 2], 3), indices(&[0, 1, 1, 0, 1]), loss()];
    check(hidden_markov().ir().unwrap(), &inputs, "loss", &["alpha", "transition", "emission"]);
}

#[program]
fn alternating(x: &mut Array2<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[[(t + 1) % 2, i]] = 0.4 * x[[t % 2, i - 1]] * x[[t % 2, i + 1]] + 0.5 * x[[t % 2, i]];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[steps % 2, i]] * x[[steps % 2, i]];
    }
}

#[test]
fn c57_two_rows_take_turns() {
    let inputs = [array(&[2, 7], 1), crate::size(5), loss()];
    check(alternating().ir().unwrap(), &inputs, "loss", &["x"]);
}

#[program]
fn flat(x: &mut Array1<f64>, n: usize, steps: usize, loss: &mut Array0<f64>) {
    for t in 0..steps {
        for i in par(1..n - 1) {
            x[(t + 1) * n + i] = 0.5 * x[t * n + i] + x[t * n + i - 1] * x[t * n + i + 1];
        }
    }
    for i in par(0..n) {
        loss[[]] += x[steps * n + i];
    }
}

#[test]
fn c57_rows_of_a_flat_array() {
    let inputs = [array(&[35], 1), crate::size(7), crate::size(4), loss()];
    check(flat().ir().unwrap(), &inputs, "loss", &["x"]);
}

/// Two fields and what drives them, on a ring, with neighbours at other distances.
#[program]
fn ring(u: &mut Array2<f64>, v: &mut Array2<f64>, f: &Array2<f64>, loss: &mut Array0<f64>) {
    let n = u.dim(1);
    for t in 1..u.dim(0) {
        for i in par(0..n) {
            let flow = v[[t - 1, (i + 2) % n]] - v[[t - 1, (i + n - 1) % n]] * u[[t - 1, i]];
            u[[t, i]] = u[[t - 1, (i + 1) % n]] * 0.5 + flow * f[[t, i]];
            v[[t, i]] = v[[t - 1, i]] - 0.1 * flow * f[[t, (i + 1) % n]];
        }
    }
    for (t, i) in par(0..u.dim(0), 0..n) {
        loss[[]] += u[[t, i]] * v[[t, i]];
    }
}

#[test]
fn c57_two_fields_on_a_ring_keep_their_history() {
    let inputs = [array(&[5, 6], 1), array(&[5, 6], 2), array(&[5, 6], 3), loss()];
    check(ring().ir().unwrap(), &inputs, "loss", &["u", "v", "f"]);
    check(ring().ir().unwrap(), &inputs, "u", &["u", "f"]);
}

/// Neighbours under conditions: in some steps and columns there are none.
#[program]
fn where_they_exist(x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    let n = x.dim(1);
    for t in 0..x.dim(0) {
        for i in par(0..n) {
            let mut next = x[[t, i]];
            if t > 0 {
                next += x[[t - 1, i]] * x[[t - 1, i]];
                if i > 0 {
                    next -= x[[t - 1, i - 1]].sin();
                }
                if i + 1 < n && x[[t - 1, i]] > 0.2 {
                    next *= x[[t - 1, i + 1]];
                }
            }
            x[[t, i]] = next;
        }
    }
    for i in par(0..n) {
        loss[[]] += x[[x.dim(0) - 1, i]] * x[[x.dim(0) - 1, i]];
    }
}

#[test]
fn c57_neighbours_are_read_where_they_exist() {
    for shape in [[5, 6], [1, 6], [4, 1]] {
        check(where_they_exist().ir().unwrap(), &[array(&shape, 1), loss()], "loss", &["x"]);
    }
}

/// A loop without iterations at a row that does not exist.
#[program]
fn beyond(x: &mut Array2<f64>, row: usize, columns: usize, loss: &mut Array0<f64>) {
    for i in par(1..columns) {
        x[[row + 1, i]] = x[[row, i - 1]] * x[[row, i + 1]];
    }
    for i in par(0..x.dim(1)) {
        loss[[]] += x[[1, i]];
    }
}

#[test]
fn c57_a_loop_without_iterations_touches_no_row() {
    for (row, columns) in [(0, 4), (7, 1)] {
        let inputs = [array(&[2, 5], 1), crate::size(row), crate::size(columns), loss()];
        check(beyond().ir().unwrap(), &inputs, "loss", &["x"]);
    }
}

/// Planes whose inside is written from the plane before, and whose sides are written afterwards.
#[program]
fn planes(p: &mut Array3<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (p.dim(1), p.dim(2));
    for t in 1..p.dim(0) {
        for (i, j) in par(1..n - 1, 0..m) {
            let around = p[[t - 1, i - 1, j]] * p[[t - 1, i + 1, j]] - p[[t - 1, i, (j + 1) % m]];
            p[[t, i, j]] = p[[t, i, j]] * 0.5 + around * p[[t - 1, i, j]];
        }
        for j in par(0..m) {
            p[[t, 0, j]] = p[[t, 1, j]];
            p[[t, n - 1, j]] = p[[t - 1, n - 1, j]] * p[[t, n - 2, j]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += p[[p.dim(0) - 1, i, j]].sin();
    }
}

#[test]
fn c57_planes_with_sides_keep_their_history() {
    check(planes().ir().unwrap(), &[array(&[4, 5, 4], 1), loss()], "loss", &["p"]);
}

#[program]
fn diagonals(a: &Array1<f64>, b: &Array1<f64>, loss: &mut Array0<f64>) {
    let (n, m) = (a.len(), b.len());
    let mut r = Array2::<f64>::zeros([n + 1, m + 1]);
    fill(r, 2.0);
    r[[0, 0]] = 0.0;
    for d in 2..=n + m {
        let low = if d > m { d - m } else { 1 };
        let high = if d - 1 < n { d - 1 } else { n };
        for i in par(low..high + 1) {
            let j = d - i;
            let least = r[[i - 1, j]].min(r[[i, j - 1]]).min(r[[i - 1, j - 1]]);
            r[[i, j]] = (a[i - 1] - b[j - 1]).powi(2) + least * least;
        }
    }
    loss[[]] = r[[n, m]];
}

#[test]
fn c57_a_diagonal_is_written_from_the_two_before() {
    for (n, m) in [(5, 4), (1, 3), (0, 2)] {
        check(diagonals().ir().unwrap(), &[array(&[n], 1), array(&[m], 2), loss()], "loss", &["a", "b"]);
    }
}

#[program]
fn recurrence(a: &mut Array1<f64>, c: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = a.len();
    let mut carried = 0.5;
    let mut count = 0;
    for _t in 0..steps {
        c[0] = 0.3;
        for i in 1..n {
            let pivot = 2.0 + 0.25 * c[i - 1] * a[i];
            c[i] = (carried + a[i - 1]) / pivot;
            let new = c[i] * a[i] + 0.125 * carried;
            if new < a[i] {
                a[i] = new;
                count += 1;
            }
            carried = (carried * c[i] + a[i]).sin();
        }
        while carried > 0.2 {
            carried = carried * a[0] * 0.5;
        }
    }
    loss[[]] = carried + sum(a) + count as f64;
}

#[test]
fn c57_numbers_are_carried_through_sequential_loops() {
    for steps in [0, 1, 4] {
        let inputs = [array(&[6], 1), array(&[6], 2), crate::size(steps), loss()];
        check(recurrence().ir().unwrap(), &inputs, "loss", &["a", "c"]);
    }
}
