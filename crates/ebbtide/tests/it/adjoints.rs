//! What adjoints look like: golden texts.

use ebbtide::prelude::*;
use expect_test::{Expect, expect};

/// Compares the text of a gradient program.
fn check<P: ebbtide::__lang::Source>(gradient: ebbtide::Gradient<P>, expected: Expect) {
    expected.assert_eq(&gradient.to_string());
}

#[program]
fn pointwise(s: &mut Array1<f64>, p: &Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..s.len()) {
            s[i] += 0.1 * s[i].tanh() * p[i];
        }
    }
    for i in par(0..s.len()) {
        loss[[]] += s[i];
    }
}

#[test]
fn a_pointwise_step_records_one_array_and_reads_it_back() {
    check(
        pointwise().grad(pointwise::loss).wrt(pointwise::s).wrt(pointwise::p),
        expect![[r#"
            driven program pointwise_gradient(s: &Array1<f64>, p: &Array1<f64>, steps: usize, loss: &Array0<f64>, d_s: &mut Array1<f64>, d_p: &mut Array1<f64>) {
                let v16 = s.len();
                let mut s' = Array1::<f64>::zeros([v16]);
                copy(s, s');
                let mut loss' = Array0::<f64>::zeros([]);
                copy(loss, loss');
                let mut d_s' = Array1::<f64>::zeros([v16]);
                let mut d_p' = Array1::<f64>::zeros([p.len()]);
                let mut d_loss' = Array0::<f64>::zeros([]);
                forward loop 0 over 0..steps carrying [s'] in pieces from..to {
                  advance:
                    for _t in from..to {
                        for i in par(0..s'.len()) {
                            s'[i] += 0.1 * s'[i].tanh() * p[i];
                        }
                    }
                  record:
                    for _t_3 in from..to {
                        let s_old = push(s');
                        for i_7 in par(0..s'.len()) {
                            s'[i_7] = s_old[i_7] + 0.1 * s_old[i_7].tanh() * p[i_7];
                        }
                    }
                }
                let v13 = s'.len();
                for i_2 in par(0..v13) {
                    loss'[[]] += s'[i_2];
                }
                d_loss'[[]] = 1.0;
                for i_4 in par(0..v13) {
                    d_s'[i_4] += d_loss'[[]];
                }
                backward loop 0 {
                    for _t_back in from..to {
                        pop(s');
                        for i_6 in par(0..s'.len()) {
                            let v42 = s'[i_6].tanh();
                            let v46 = d_s'[i_6];
                            let v47 = v46 * p[i_6];
                            d_p'[i_6] += v46 * (0.1 * v42);
                            d_s'[i_6] += v47 * 0.1 * (1.0 - v42 * v42);
                        }
                    }
                }
                copy(d_s', d_s);
                copy(d_p', d_p);
            }
        "#]],
    );
}

#[program]
fn periodic(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    let n = u.len();
    for _t in 0..steps {
        for i in par(0..n) {
            next[i] = 0.5 * u[i] + 0.25 * (u[(i + n - 1) % n] + u[(i + 1) % n]);
        }
        swap(u, next);
    }
    for i in par(0..n) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn a_linear_periodic_stencil_gathers_and_records_nothing() {
    check(
        periodic().grad(periodic::loss).wrt(periodic::u),
        expect![[r#"
            driven program periodic_gradient(u: &Array1<f64>, next: &Array1<f64>, steps: usize, loss: &Array0<f64>, d_u: &mut Array1<f64>) {
                let v27 = u.len();
                let mut u' = Array1::<f64>::zeros([v27]);
                copy(u, u');
                let v28 = next.len();
                let mut next' = Array1::<f64>::zeros([v28]);
                copy(next, next');
                let mut loss' = Array0::<f64>::zeros([]);
                copy(loss, loss');
                let mut d_u' = Array1::<f64>::zeros([v27]);
                let mut d_next' = Array1::<f64>::zeros([v28]);
                let mut d_loss' = Array0::<f64>::zeros([]);
                let n = u'.len();
                forward loop 0 over 0..steps carrying [u'] in pieces from..to {
                  advance:
                    for _t in from..to {
                        for i in par(0..n) {
                            next'[i] = 0.5 * u'[i] + 0.25 * (u'[(i + n - 1) % n] + u'[(i + 1) % n]);
                        }
                        swap(u', next');
                    }
                  record:
                    for _t_3 in from..to {
                        for i_7 in par(0..n) {
                            next'[i_7] = 0.5 * u'[i_7] + 0.25 * (u'[(i_7 + n - 1) % n] + u'[(i_7 + 1) % n]);
                        }
                        swap(u', next');
                    }
                }
                for i_2 in par(0..n) {
                    loss'[[]] += u'[i_2] * u'[i_2];
                }
                d_loss'[[]] = 1.0;
                for i_4 in par(0..n) {
                    let v37 = d_loss'[[]];
                    let v38 = v37 * u'[i_4];
                    d_u'[i_4] += v37 * u'[i_4];
                    d_u'[i_4] += v38;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        swap(u', next');
                        swap(d_u', d_next');
                        #[unproved]
                        for k0 in par(0..d_u'.len()) {
                            d_u'[k0] = d_next'[k0] * 0.5 + d_next'[(k0 - (-1 + u'.len())).rem_euclid(u'.len())] * 0.25 + d_next'[(k0 - 1).rem_euclid(u'.len())] * 0.25;
                        }
                    }
                }
                copy(d_u', d_u);
            }
        "#]],
    );
}

#[program]
fn bounded(u: &Array2<f32>, out: &mut Array2<f32>, loss: &mut Array0<f32>) {
    let n = u.dim(0);
    let m = u.dim(1);
    for (i, j) in par(1..n - 1, 1..m - 1) {
        if u[[i, j]] > 0.0 {
            out[[i, j]] = u[[i - 1, j]] * u[[i, j + 1]];
        }
    }
    for (i, j) in par(0..n, 0..m) {
        loss[[]] += out[[i, j]];
    }
}

#[test]
fn a_bounded_conditional_stencil_gathers_under_the_condition_of_its_source() {
    check(
        bounded().grad(bounded::loss).wrt(bounded::u),
        expect![[r#"
            driven program bounded_gradient(u: &Array2<f32>, out: &Array2<f32>, loss: &Array0<f32>, d_u: &mut Array2<f32>) {
                let v25 = out.dim(0);
                let v26 = out.dim(1);
                let mut out' = Array2::<f32>::zeros([v25, v26]);
                copy(out, out');
                let mut loss' = Array0::<f32>::zeros([]);
                copy(loss, loss');
                let mut d_u' = Array2::<f32>::zeros([u.dim(0), u.dim(1)]);
                let mut d_out' = Array2::<f32>::zeros([v25, v26]);
                let mut d_loss' = Array0::<f32>::zeros([]);
                let n = u.dim(0);
                let m = u.dim(1);
                let v4 = n - 1;
                let v7 = m - 1;
                for (i, j) in par(1..v4, 1..v7) {
                    if u[[i, j]] > 0.0f32 {
                        out'[[i, j]] = u[[i - 1, j]] * u[[i, j + 1]];
                    }
                }
                for (i_2, j_2) in par(0..n, 0..m) {
                    loss'[[]] += out'[[i_2, j_2]];
                }
                d_loss'[[]] = 1.0f32;
                for (i_4, j_4) in par(0..n, 0..m) {
                    d_out'[[i_4, j_4]] += d_loss'[[]];
                }
                #[unproved]
                for (k0, k1) in par(0..d_u'.dim(0), 0..d_u'.dim(1)) {
                    let mut sum = 0.0f32;
                    let v45 = k0 + 1;
                    if ((v45 >= 1) & (v45 < v4)) & ((k1 >= 1) & (k1 < v7)) {
                        if u[[v45, k1]] > 0.0f32 {
                            sum = sum + d_out'[[v45, k1]] * u[[v45, k1 + 1]];
                        }
                    }
                    let v79 = k1 - 1;
                    if ((k0 >= 1) & (k0 < v4)) & ((v79 >= 1) & (v79 < v7)) {
                        if u[[k0, v79]] > 0.0f32 {
                            sum = sum + d_out'[[k0, v79]] * u[[k0 - 1, v79]];
                        }
                    }
                    d_u'[[k0, k1]] = sum;
                }
                for (i_6, j_6) in par(1..v4, 1..v7) {
                    if u[[i_6, j_6]] > 0.0f32 {
                        d_out'[[i_6, j_6]] = 0.0f32;
                    }
                }
                copy(d_u', d_u);
            }
        "#]],
    );
}

/// Newton's iteration in each element, until it has converged; and a loop that is left in its middle.
#[program]
fn newton(x: &Array1<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..x.len()) {
        let mut r = 1.0;
        while (r * r - x[i]).abs() > 1e-12 {
            r = 0.5 * (r + x[i] / r);
        }
        let mut s = r;
        for k in 0..20 {
            s = s * 0.9 + 0.01 * x[i] * (k as f64);
            if s < 1.0 {
                break;
            }
        }
        y[i] = r * s;
    }
    for i in par(0..x.len()) {
        loss[[]] += y[i] * y[i];
    }
}

#[test]
fn loops_inside_parallel_bodies_that_end_when_their_data_say_so_are_reversed() {
    let device = crate::cpu();
    let start = [2.0, 0.5, 9.0, 30.0, 1.7, 4.0, 5.5, 11.0, 3.0];
    let x = device.array(&start).unwrap();
    let mut y = device.zeros([9]).unwrap();
    let mut loss = device.scalar(0.0).unwrap();
    let g = newton().grad(newton::loss).wrt(newton::x).compile(&device).unwrap();
    let out = g.launch((&x, &mut y, &mut loss)).unwrap();
    let plain = newton().compile(&device).unwrap();
    for (k, found) in out.get(newton::x).unwrap().as_slice().iter().enumerate() {
        let mut at = |h: f64| {
            let mut moved = start;
            moved[k] += h;
            let x = device.array(&moved).unwrap();
            loss.fill(0.0).unwrap();
            let _done = plain.launch((&x, &mut y, &mut loss)).unwrap();
            loss.value()
        };
        let difference = (at(1e-6) - at(-1e-6)) / 2e-6;
        // Differences see the tolerance of the iteration.
        assert!((found - difference).abs() < 1e-5 * difference.abs().max(1.0), "{k}: {found} {difference}");
    }
}

/// An iteration that reads its own element before and after it writes it.
#[program]
fn rewritten(u: &mut Array1<f64>, p: &mut Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        let before = u[i] * p[i];
        u[i] = before * before;
        p[i] = p[i] * u[i].sin();
    }
    for i in par(0..u.len()) {
        loss[[]] += p[i] * u[i];
    }
}

#[test]
fn what_an_iteration_wrote_itself_is_read_where_it_was_written_and_not_from_the_tape() {
    let device = crate::cpu();
    let (u0, p0) = ([0.3, 0.8, 1.4], [0.7, -0.4, 1.1]);
    let (mut u, mut p) = (device.array(&u0).unwrap(), device.array(&p0).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    type P = rewritten;
    let g = rewritten().value_and_grad(P::loss).wrt(P::u).wrt(P::p).compile(&device).unwrap();
    let out = g.launch((&mut u, &mut p, &mut loss)).unwrap();
    for i in 0..3 {
        let (a, b) = (u0[i], p0[i]);
        let w = (a * b) * (a * b);
        // b w sin w
        let slope = b * (w.sin() + w * w.cos());
        let (du, dp) = (slope * 2.0 * a * b * b, w.sin() * w + slope * 2.0 * a * a * b);
        let found = (out.get(P::u).unwrap().as_slice()[i], out.get(P::p).unwrap().as_slice()[i]);
        assert!((found.0 - du).abs() < 1e-14 && (found.1 - dp).abs() < 1e-14, "{found:?} {du} {dp}");
    }
}

/// An iteration that writes its element, reads it back inside a branch, and writes it again there.
#[program]
fn rewritten_in_a_branch(u: &mut Array1<f64>, p: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        u[i] = u[i] * p[i];
        if p[i] > 0.5 {
            u[i] = u[i] * u[i];
            u[i] = u[i].sin() + p[i];
        }
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * u[i];
    }
}

#[test]
fn elements_that_are_rewritten_in_a_branch_are_differentiated() {
    let device = crate::cpu();
    let (u0, p0) = ([0.3, 0.8, 1.4], [0.7, 0.4, 1.1]);
    let (mut u, p) = (device.array(&u0).unwrap(), device.array(&p0).unwrap());
    let mut loss = device.scalar(0.0).unwrap();
    type P = rewritten_in_a_branch;
    let g = rewritten_in_a_branch().grad(P::loss).wrt(P::u).wrt(P::p).compile(&device).unwrap();
    let out = g.launch((&mut u, &p, &mut loss)).unwrap();
    for i in 0..3 {
        let (a, b) = (u0[i], p0[i]);
        let (du, dp) = if b > 0.5 {
            let w = a * b;
            let end = (w * w).sin() + b;
            let slope = 2.0 * end * (w * w).cos() * 2.0 * w;
            (slope * b, slope * a + 2.0 * end)
        } else {
            (2.0 * a * b * b, 2.0 * a * b * a)
        };
        let found = (out.get(P::u).unwrap().as_slice()[i], out.get(P::p).unwrap().as_slice()[i]);
        assert!((found.0 - du).abs() < 1e-14 && (found.1 - dp).abs() < 1e-14, "{i}: {found:?} {du} {dp}");
    }
}

/// An iteration that stores an element and, here and there, stores it again.
#[program]
fn stored_twice(x: &Array1<f64>, p: &Array1<f64>, z: &mut Array1<f64>, loss: &mut Array0<f64>) {
    let n = x.len();
    for i in par(0..n) {
        z[i] = x[(i + 1) % n];
        if p[i] > 0.5 {
            z[i] = p[i] * x[i];
        }
    }
    for i in par(0..n) {
        loss[[]] += z[i] * z[i];
    }
}

#[test]
fn nothing_flows_to_what_an_iteration_overwrote_itself() {
    let device = crate::cpu();
    let (x0, p0) = ([0.3, 0.8, 1.4, -0.6], [0.7, 0.4, 1.1, 0.2]);
    let (x, p) = (device.array(&x0).unwrap(), device.array(&p0).unwrap());
    let (mut z, mut loss) = (device.zeros([4]).unwrap(), device.scalar(0.0).unwrap());
    type P = stored_twice;
    let g = stored_twice().grad(P::loss).wrt(P::x).compile(&device).unwrap();
    let out = g.launch((&x, &p, &mut z, &mut loss)).unwrap();
    let mut expected = [0.0; 4];
    for i in 0..4 {
        if p0[i] > 0.5 {
            expected[i] += 2.0 * p0[i] * x0[i] * p0[i];
        } else {
            expected[(i + 1) % 4] += 2.0 * x0[(i + 1) % 4];
        }
    }
    for (found, expected) in out.get(P::x).unwrap().as_slice().iter().zip(expected) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
}

/// The rows at the ends are as they were two passes before.
#[program]
fn with_ends(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(1..u.len() - 1) {
            next[i] = u[i - 1] * u[i + 1];
        }
        swap(u, next);
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i];
    }
}

/// Some elements are as they were two passes before.
#[program]
fn with_holes(u: &mut Array1<f64>, next: &mut Array1<f64>, steps: usize, loss: &mut Array0<f64>) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            if u[i] > 0.5 {
                next[i] = u[i] * u[i];
            }
        }
        swap(u, next);
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i];
    }
}

#[program]
fn through_a_product(
    h: &mut Array2<f64>,
    z: &mut Array2<f64>,
    w: &Array2<f64>,
    steps: usize,
    loss: &mut Array0<f64>,
) {
    for _t in 0..steps {
        matmul(h, w, z);
        for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
            h[[i, j]] = z[[i, j]].tanh();
        }
    }
    for (i, j) in par(0..h.dim(0), 0..h.dim(1)) {
        loss[[]] += h[[i, j]];
    }
}

#[test]
fn a_slot_holds_nothing_that_a_pass_replaces_before_it_reads() {
    let carried = |text: String| {
        let line = text.lines().find(|l| l.contains("forward loop")).unwrap().trim().to_string();
        line[line.find("carrying").unwrap()..].to_string()
    };
    let text = with_ends().grad(with_ends::loss).wrt(with_ends::u).to_string();
    assert_eq!(carried(text), "carrying [u', next'] in pieces from..to {");
    let text = with_holes().grad(with_holes::loss).wrt(with_holes::u).to_string();
    assert_eq!(carried(text), "carrying [u', next'] in pieces from..to {");
    let text = through_a_product().grad(through_a_product::loss).wrt(through_a_product::w).to_string();
    assert_eq!(carried(text), "carrying [h'] in pieces from..to {");
}

/// A leapfrog step with a source and receivers, as surveys have them.
#[program]
fn survey(
    u: &mut Array1<f32>,
    prev: &mut Array1<f32>,
    c: &Array1<f32>,
    source: &Array1<f32>,
    seen: &mut Array2<f32>,
    steps: usize,
    loss: &mut Array0<f32>,
) {
    let n = u.len();
    for t in 0..steps {
        for i in par(1..n - 1) {
            prev[i] = 2.0 * u[i] - prev[i] + c[i] * (u[i - 1] + u[i + 1]);
        }
        swap(u, prev);
        u[3] += source[t];
        for k in par(0..seen.dim(1)) {
            seen[[t, k]] = u[k];
        }
    }
    for (t, k) in par(0..steps, 0..seen.dim(1)) {
        loss[[]] += seen[[t, k]] * seen[[t, k]];
    }
}

#[test]
fn a_leapfrog_step_is_reversed_in_one_pass_and_puts_no_element_aside() {
    check(
        survey().grad(survey::loss).wrt(survey::c),
        expect![[r#"
            driven program survey_gradient(u: &Array1<f32>, prev: &Array1<f32>, c: &Array1<f32>, source: &Array1<f32>, seen: &Array2<f32>, steps: usize, loss: &Array0<f32>, d_c: &mut Array1<f32>) {
                let v37 = u.len();
                let mut u' = Array1::<f32>::zeros([v37]);
                copy(u, u');
                let v38 = prev.len();
                let mut prev' = Array1::<f32>::zeros([v38]);
                copy(prev, prev');
                let v39 = seen.dim(0);
                let v40 = seen.dim(1);
                let mut seen' = Array2::<f32>::undefined([v39, v40]);
                let mut loss' = Array0::<f32>::zeros([]);
                copy(loss, loss');
                #[unproved]
                for (k0, k1) in par(steps.max(0)..seen'.dim(0), 0..seen'.dim(1)) {
                    seen'[[k0, k1]] = seen[[k0, k1]];
                }
                let mut d_u' = Array1::<f32>::zeros([v37]);
                let mut d_prev' = Array1::<f32>::zeros([v38]);
                let mut d_prev_next' = Array1::<f32>::undefined([v38]);
                let mut d_c' = Array1::<f32>::zeros([c.len()]);
                let mut d_seen' = Array2::<f32>::zeros([v39, v40]);
                let mut d_loss' = Array0::<f32>::zeros([]);
                let n = u'.len();
                forward loop 0 over 0..steps carrying [u', prev'] keeping [seen'] in pieces from..to {
                  advance:
                    for t in from..to {
                        for i in par(1..n - 1) {
                            prev'[i] = 2.0f32 * u'[i] - prev'[i] + c[i] * (u'[i - 1] + u'[i + 1]);
                        }
                        swap(u', prev');
                        u'[3] += source[t];
                        for k in par(0..seen'.dim(1)) {
                            seen'[[t, k]] = u'[k];
                        }
                    }
                  record:
                    for t_6 in from..to {
                        let prev_old = push(prev');
                        for i_4 in par(0..prev'.len()) {
                            if (i_4 >= 1) & (i_4 < n - 1) {
                                prev'[i_4] = 2.0f32 * u'[i_4] - prev_old[i_4] + c[i_4] * (u'[i_4 - 1] + u'[i_4 + 1]);
                            } else {
                                prev'[i_4] = prev_old[i_4];
                            }
                        }
                        swap(u', prev');
                        u'[3] += source[t_6];
                        for k_7 in par(0..seen'.dim(1)) {
                            seen'[[t_6, k_7]] = u'[k_7];
                        }
                    }
                }
                let v31 = seen'.dim(1);
                for (t_2, k_2) in par(0..steps, 0..v31) {
                    loss'[[]] += seen'[[t_2, k_2]] * seen'[[t_2, k_2]];
                }
                d_loss'[[]] = 1.0f32;
                for (t_4, k_4) in par(0..steps, 0..v31) {
                    let v69 = d_loss'[[]];
                    let v70 = v69 * seen'[[t_4, k_4]];
                    d_seen'[[t_4, k_4]] += v69 * seen'[[t_4, k_4]];
                    d_seen'[[t_4, k_4]] += v70;
                }
                backward loop 0 {
                    for t_back in from..to {
                        let t_5 = from + to - 1 - t_back;
                        let v79 = n - 1;
                        for k_6 in par(0..seen'.dim(1)) {
                            let v87 = d_seen'[[t_5, k_6]];
                            d_seen'[[t_5, k_6]] = 0.0f32;
                            d_u'[k_6] += v87;
                        }
                        swap(u', prev');
                        swap(d_u', d_prev');
                        pop(prev');
                        #[unproved]
                        for k0_2 in par(0..d_u'.len()) {
                            let mut sum = 0.0f32;
                            if (k0_2 >= 1) & (k0_2 < v79) {
                                sum = sum + d_prev'[k0_2] * 2.0f32;
                            }
                            let v121 = k0_2 + 1;
                            if (v121 >= 1) & (v121 < v79) {
                                sum = sum + d_prev'[v121] * c[v121];
                            }
                            let v148 = k0_2 - 1;
                            if (v148 >= 1) & (v148 < v79) {
                                sum = sum + d_prev'[v148] * c[v148];
                            }
                            d_u'[k0_2] += sum;
                            if (k0_2 >= 1) & (k0_2 < v79) {
                                let v202 = d_prev'[k0_2];
                                d_c'[k0_2] += v202 * (u'[k0_2 - 1] + u'[k0_2 + 1]);
                                d_prev_next'[k0_2] = -v202;
                            } else {
                                d_prev_next'[k0_2] = d_prev'[k0_2];
                            }
                        }
                        swap(d_prev', d_prev_next');
                    }
                }
                copy(d_c', d_c);
            }
        "#]],
    );
}
