//! Loads that many iterations share: their adjoints sum over the fibre of each element, in index order.

use ebbtide::Budget;
use ebbtide::prelude::*;
use expect_test::{Expect, expect};

/// Compares the reverse half of a gradient program.
fn check<P: ebbtide::__lang::Source>(gradient: ebbtide::Gradient<P>, expected: Expect) {
    let text = gradient.to_string();
    let reverse = text.find("d_loss'[[]] = 1.0;\n").map_or(0, |at| at + "d_loss'[[]] = 1.0;\n".len());
    expected.assert_eq(&text[reverse..]);
}

/// The interpreter, and a processor with three threads.
fn devices() -> [Device; 2] {
    [Device::interpreter(), ebbtide_cpu::Options::new().threads(3).build().unwrap().0]
}

/// Checks the gradient of a program `p(x, a, y, steps, loss)`: the same bits on every device under every schedule, the
/// slope that differences show, and that of the tangent.
macro_rules! same_and_right {
    ($p:ident) => {
        same_and_right!($p, [1, 2, 3, 21])
    };
    ($p:ident, $sizes:expr) => {{
        type P = $p;
        let gradients = devices().map(|device| {
            let g = $p().grad(P::loss).wrt(P::x).wrt(P::a).compile(&device).unwrap();
            (device, g)
        });
        let device = Device::interpreter();
        let plain = $p().compile(&device).unwrap();
        let jvp = $p().jvp(P::loss).wrt(P::x).wrt(P::a).compile(&device).unwrap();
        for n in $sizes {
            let steps = 3;
            let x0: Vec<f64> = (0..n).map(|i| 0.15 + 0.7 * ((i * 7) % 10) as f64 / 10.0).collect();
            let a0: Vec<f64> = (0..n * n).map(|i| (1.3 * i as f64).sin() / (n as f64).sqrt()).collect();
            let v: Vec<f64> = (0..n).map(|i| (i as f64 * 1.7 + 0.5).sin()).collect();
            let w: Vec<f64> = (0..n * n).map(|i| (i as f64 * 2.3).cos()).collect();
            let mut expected: Option<(Vec<f64>, Vec<f64>)> = None;
            for (device, g) in &gradients {
                let budgets = [(1, 1), (2, 1), (2, 3)].map(|(slots, block)| Budget::Revolve { slots, block });
                for budget in [Budget::StoreAll].into_iter().chain(budgets) {
                    let mut x = device.array(&x0).unwrap();
                    let a = device.array_with_shape([n, n], &a0).unwrap();
                    let (mut y, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
                    let g = g.with_budget(budget);
                    let out = g.launch((&mut x, &a, &mut y, steps, &mut loss)).unwrap();
                    let found = (out.get(P::x).unwrap().to_vec(), out.get(P::a).unwrap().to_vec());
                    let bits = |a: &[f64]| a.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    let (dx, da) = expected.get_or_insert(found.clone());
                    assert_eq!((bits(dx), bits(da)), (bits(&found.0), bits(&found.1)), "{n}, {budget:?}");
                }
            }
            let (dx, da) = expected.unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let slope = dot(&dx, &v) + dot(&da, &w);
            let loss_at = |h: f64| {
                let moved =
                    |a: &[f64], d: &[f64]| a.iter().zip(d).map(|(a, d)| a + h * d).collect::<Vec<_>>();
                let mut x = device.array(&moved(&x0, &v)).unwrap();
                let a = device.array_with_shape([n, n], &moved(&a0, &w)).unwrap();
                let (mut y, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
                let _done = plain.launch((&mut x, &a, &mut y, steps, &mut loss)).unwrap();
                loss.value()
            };
            let difference = (loss_at(1e-6) - loss_at(-1e-6)) / 2e-6;
            let size = dot(&dx, &dx).sqrt() * dot(&v, &v).sqrt() + dot(&da, &da).sqrt() * dot(&w, &w).sqrt();
            assert!((slope - difference).abs() < 1e-7 * size.max(1e-3), "{n}: {slope} is not {difference}");
            let (along_x, along_a) =
                (device.array(&v).unwrap(), device.array_with_shape([n, n], &w).unwrap());
            let direction = Direction::new().array(P::x, &along_x).array(P::a, &along_a);
            let (mut x, a) = (device.array(&x0).unwrap(), device.array_with_shape([n, n], &a0).unwrap());
            let (mut y, mut loss) = (device.zeros([n]).unwrap(), device.zeros([]).unwrap());
            let out = jvp.launch((&mut x, &a, &mut y, steps, &mut loss), &direction).unwrap();
            let forward = out.get(P::loss).unwrap().value();
            assert!((forward - slope).abs() <= 1e-12 * size.max(1e-3), "{n}: {forward} is not {slope}");
        }
    }};
}

/// A program `p(x, a, y, steps, loss)` whose step makes `y` from `x` and `a`.
macro_rules! step {
    ($name:ident, $step:ident) => {
        #[program]
        fn $name(
            x: &mut Array1<f64>,
            a: &Array2<f64>,
            y: &mut Array1<f64>,
            steps: usize,
            loss: &mut Array0<f64>,
        ) {
            for _t in 0..steps {
                $step(x, a, y);
                for i in par(0..x.len()) {
                    x[i] = 0.6 * x[i] + 0.2 * y[i];
                }
            }
            for i in par(0..x.len()) {
                loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64));
            }
        }
    };
}

#[program]
fn row_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut sum = x[i];
        for k in 0..x.len() {
            sum += a[[k, i]] * x[k];
        }
        y[i] = sum.tanh();
    }
}
step!(rows, row_step);

#[test]
fn a_vector_that_all_iterations_read_is_summed_element_by_element() {
    check(
        rows().grad(rows::loss).wrt(rows::x).wrt(rows::a),
        expect![[r#"
                for i_5 in par(0..v28) {
                    let v61 = d_loss'[[]] * (1.0 + 0.1 * i_5 as f64);
                    let v62 = v61 * x'[i_5];
                    d_x'[i_5] += v61 * x'[i_5];
                    d_x'[i_5] += v62;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        let v200 = (_t_back - from) % 8;
                        let v70 = x'.len();
                        pop(x');
                        for i_7 in par(0..x'.len()) {
                            let v82 = d_x'[i_7];
                            d_y'[i_7] = v82 * 0.2;
                            d_x'[i_7] = v82 * 0.6;
                        }
                        let v214 = 0 + x'.len() - 1 - 0;
                        let v218 = v214 + 1;
                        let v219 = v218 - x'.len();
                        let v220 = v218 - 0;
                        for i_9 in par(0..v70) {
                            let mut sum_2 = x'[i_9];
                            let mut d_sum = 0.0;
                            for k_2 in 0..x'.len() {
                                sum_2 = sum_2 + a[[k_2, i_9]] * x'[k_2];
                            }
                            let v99 = sum_2.tanh();
                            d_sum = d_sum + d_y'[i_9] * (1.0 - v99 * v99);
                            let v107 = d_sum;
                            kept0[i_9] = v107;
                            waiting0[[v200, i_9]] = v107;
                            let v120 = d_sum;
                            d_sum = 0.0;
                            d_x'[i_9] += v120;
                        }
                        if 0 < v70 {
                            #[unproved]
                            for k_6 in par(v219..v220) {
                                waiting1[[v200, k_6]] = x'[0 + x'.len() - 1 - (v214 - k_6)];
                            }
                        }
                        if (v200 == 8 - 1) | (_t_back == to - 1) {
                            #[unproved]
                            for (k_7, i_12) in par(v219..v220, 0..v70) {
                                let mut total = d_a'[[k_7, i_12]];
                                for step in 0..v200 + 1 {
                                    total = total + waiting0[[step, i_12]] * waiting1[[step, k_7]];
                                }
                                d_a'[[k_7, i_12]] = total;
                            }
                        }
                        #[unproved]
                        for (k0_2, lane) in par(0..d_x'.len(), 0..32) {
                            let mut sum_4 = 0.0;
                            let v142 = -1 + x.len() - k0_2;
                            let v144 = x'.len();
                            if (v142 >= 0) & (v142 < v144) {
                                for i_10 in 0..(v70 - 0) / 32 {
                                    let v155 = 0 + i_10 * 32 + lane;
                                    let k_4 = 0 + v144 - 1 - v142;
                                    sum_4 = sum_4 + kept0[v155] * a[[k_4, v155]];
                                }
                            }
                            lanes0[[k0_2, lane]] = sum_4;
                        }
                        #[unproved]
                        for k0 in par(0..d_x'.len()) {
                            let mut sum_5 = 0.0;
                            for lane_2 in 0..32 {
                                sum_5 = sum_5 + lanes0[[k0, lane_2]];
                            }
                            let v176 = -1 + x.len() - k0;
                            let v178 = x'.len();
                            if (v176 >= 0) & (v176 < v178) {
                                for i_11 in 0 + (v70 - 0) / 32 * 32..v70 {
                                    let k_5 = 0 + v178 - 1 - v176;
                                    sum_5 = sum_5 + kept0[i_11] * a[[k_5, i_11]];
                                }
                            }
                            d_x'[k0] += sum_5;
                        }
                    }
                }
                copy(d_x', d_x);
                copy(d_a', d_a);
            }
        "#]],
    );
    same_and_right!(rows, [1, 2, 31, 32, 70]);
}

/// A window under a condition that is data.
#[program]
fn window_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut sum = 0.0;
        for k in 0..n {
            if i + k < n {
                if x[i] > 0.3 {
                    sum += a[[0, k]] * x[i + k].sin();
                }
            }
        }
        y[i] = sum.exp();
    }
}
step!(window, window_step);

#[test]
fn a_window_is_turned_round_and_its_weights_are_summed() {
    check(
        window().grad(window::loss).wrt(window::x).wrt(window::a),
        expect![[r#"
                for i_5 in par(0..v35) {
                    let v68 = d_loss'[[]] * (1.0 + 0.1 * i_5 as f64);
                    let v69 = v68 * x'[i_5];
                    d_x'[i_5] += v68 * x'[i_5];
                    d_x'[i_5] += v69;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        let n_2 = x'.len();
                        pop(x');
                        for i_7 in par(0..x'.len()) {
                            let v89 = d_x'[i_7];
                            d_y'[i_7] = v89 * 0.2;
                            d_x'[i_7] = v89 * 0.6;
                        }
                        for i_9 in par(0..n_2) {
                            let mut sum_2 = 0.0;
                            let mut d_sum = 0.0;
                            for k_2 in 0..n_2 {
                                if i_9 + k_2 < n_2 {
                                    if x'[i_9] > 0.3 {
                                        sum_2 = sum_2 + a[[0, k_2]] * x'[i_9 + k_2].sin();
                                    }
                                }
                            }
                            d_sum = d_sum + d_y'[i_9] * sum_2.exp();
                            kept0[i_9] = d_sum;
                            d_sum = 0.0;
                        }
                        #[unproved]
                        for k_back_2 in par(0..n_2) {
                            let mut sum_8 = 0.0;
                            #[sum(sum_8)]
                            for i_10 in 0..n_2 {
                                let v175 = kept0[i_10];
                                if i_10 + k_back_2 < n_2 {
                                    if x'[i_10] > 0.3 {
                                        sum_8 = sum_8 + v175 * x'[i_10 + k_back_2].sin();
                                    }
                                }
                            }
                            if ((0 >= 0) & (0 < d_a'.dim(0))) & ((k_back_2 >= 0) & (k_back_2 < d_a'.dim(1))) {
                                d_a'[[0, k_back_2]] += sum_8;
                            }
                        }
                        #[unproved]
                        for k0 in par(0..d_x'.len()) {
                            let mut sum_9 = 0.0;
                            #[sum(sum_9)]
                            for k_back_3 in 0..n_2 {
                                let v215 = k0 - (-1 + x.len() - k_back_3);
                                if (v215 >= 0) & (v215 < n_2) {
                                    let v219 = kept0[v215];
                                    let k_4 = 0 + n_2 - 1 - k_back_3;
                                    if v215 + k_4 < n_2 {
                                        if x'[v215] > 0.3 {
                                            sum_9 = sum_9 + v219 * a[[0, k_4]] * x'[v215 + k_4].cos();
                                        }
                                    }
                                }
                            }
                            d_x'[k0] += sum_9;
                        }
                    }
                }
                copy(d_x', d_x);
                copy(d_a', d_a);
            }
        "#]],
    );
    same_and_right!(window, [1, 2, 3, 70]);
}

/// Rows times columns, in both orders.
#[program]
fn product_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    let mut c = Array2::<f64>::zeros([n, n]);
    for (i, j) in par(0..n, 0..n) {
        for k in 0..n {
            c[[i, j]] += a[[i, k]] * a[[k, j]] * x[k];
        }
    }
    for i in par(0..n) {
        y[i] = 0.0;
        for j in 0..n {
            y[i] += c[[i, j]] * c[[i, j]];
        }
    }
}
step!(product, product_step);

#[test]
fn a_product_by_loops_has_two_sums() {
    check(
        product().grad(product::loss).wrt(product::x).wrt(product::a),
        expect![[r#"
                for i_6 in par(0..v34) {
                    let v70 = d_loss'[[]] * (1.0 + 0.1 * i_6 as f64);
                    let v71 = v70 * x'[i_6];
                    d_x'[i_6] += v70 * x'[i_6];
                    d_x'[i_6] += v71;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        let n_2 = x'.len();
                        pop(x');
                        for i_8 in par(0..x'.len()) {
                            let v94 = d_x'[i_8];
                            d_y'[i_8] += v94 * 0.2;
                            d_x'[i_8] = v94 * 0.6;
                        }
                        fill(d_c', 0.0);
                        for i_10 in par(0..n_2) {
                            for j_back in 0..n_2 {
                                let j_4 = 0 + n_2 - 1 - j_back;
                                let v113 = d_y'[i_10];
                                let v114 = v113 * c[[i_10, j_4]];
                                d_c'[[i_10, j_4]] += v113 * c[[i_10, j_4]];
                                d_c'[[i_10, j_4]] += v114;
                            }
                            d_y'[i_10] = 0.0;
                        }
                        #[unproved]
                        for (k0_2, lane) in par(0..d_x'.len(), 0..32) {
                            let mut sum = 0.0;
                            let v174 = -1 + x.len() - k0_2;
                            if (v174 >= 0) & (v174 < n_2) {
                                #[sum(sum)]
                                for i_13 in 0..n_2 {
                                    for j_7 in 0..(n_2 - 0) / 32 {
                                        let v188 = 0 + j_7 * 32 + lane;
                                        let k_4 = 0 + n_2 - 1 - v174;
                                        sum = sum + d_c'[[i_13, v188]] * (a[[i_13, k_4]] * a[[k_4, v188]]);
                                    }
                                }
                            }
                            lanes0[[k0_2, lane]] = sum;
                        }
                        #[unproved]
                        for k0 in par(0..d_x'.len()) {
                            let mut sum_2 = 0.0;
                            for lane_2 in 0..32 {
                                sum_2 = sum_2 + lanes0[[k0, lane_2]];
                            }
                            let v211 = -1 + x.len() - k0;
                            if (v211 >= 0) & (v211 < n_2) {
                                #[sum(sum_2)]
                                for i_14 in 0..n_2 {
                                    for j_8 in 0 + (n_2 - 0) / 32 * 32..n_2 {
                                        let k_5 = 0 + n_2 - 1 - v211;
                                        sum_2 = sum_2 + d_c'[[i_14, j_8]] * (a[[i_14, k_5]] * a[[k_5, j_8]]);
                                    }
                                }
                            }
                            d_x'[k0] += sum_2;
                        }
                        #[unproved]
                        for (k0_3, k1) in par(0..d_a'.dim(0), 0..d_a'.dim(1)) {
                            let mut sum_3 = 0.0;
                            let v245 = -1 + x.len() - k0_3;
                            if (v245 >= 0) & (v245 < n_2) {
                                if (k1 >= 0) & (k1 < n_2) {
                                    #[sum(sum_3)]
                                    for i_15 in 0..n_2 {
                                        let k_6 = 0 + n_2 - 1 - v245;
                                        sum_3 = sum_3 + d_c'[[i_15, k1]] * x'[k_6] * a[[i_15, k_6]];
                                    }
                                }
                            }
                            let v267 = sum_3;
                            let mut sum_4 = 0.0;
                            if (k0_3 >= 0) & (k0_3 < n_2) {
                                let v276 = -1 + x.len() - k1;
                                if (v276 >= 0) & (v276 < n_2) {
                                    #[sum(sum_4)]
                                    for j_9 in 0..n_2 {
                                        let k_7 = 0 + n_2 - 1 - v276;
                                        sum_4 = sum_4 + d_c'[[k0_3, j_9]] * x'[k_7] * a[[k_7, j_9]];
                                    }
                                }
                            }
                            d_a'[[k0_3, k1]] += v267 + sum_4;
                        }
                        pop(c);
                    }
                }
                copy(d_x', d_x);
                copy(d_a', d_a);
            }
        "#]],
    );
    same_and_right!(product);
}

/// Two parallel variables in one index.
#[program]
fn diagonal_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    let mut z = Array1::<f64>::zeros([2 * n]);
    let mut c = Array2::<f64>::zeros([n, n]);
    for i in par(0..n) {
        z[i] = x[i];
    }
    for i in par(0..n) {
        z[n + i] = x[i] * x[i];
    }
    for (i, j) in par(0..n, 0..n) {
        c[[i, j]] = (z[i + j] * a[[i, j]]).sin();
    }
    for (i, j) in par(0..n, 0..n) {
        y[i] += c[[i, j]];
    }
}
step!(diagonals, diagonal_step);

#[test]
fn diagonals_are_summed_along_their_length() {
    check(
        diagonals().grad(diagonals::loss).wrt(diagonals::x).wrt(diagonals::a),
        expect![[r#"
                for i_8 in par(0..v40) {
                    let v82 = d_loss'[[]] * (1.0 + 0.1 * i_8 as f64);
                    let v83 = v82 * x'[i_8];
                    d_x'[i_8] += v82 * x'[i_8];
                    d_x'[i_8] += v83;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        let n_2 = x'.len();
                        pop(x');
                        for i_10 in par(0..x'.len()) {
                            let v112 = d_x'[i_10];
                            d_y'[i_10] += v112 * 0.2;
                            d_x'[i_10] = v112 * 0.6;
                        }
                        for (i_12, j_4) in par(0..n_2, 0..n_2) {
                            d_c'[[i_12, j_4]] = d_y'[i_12];
                        }
                        for (i_14, j_6) in par(0..n_2, 0..n_2) {
                            let v126 = z[i_14 + j_6];
                            let v127 = a[[i_14, j_6]];
                            let v133 = d_c'[[i_14, j_6]] * (v126 * v127).cos();
                            d_a'[[i_14, j_6]] += v133 * v126;
                            kept0[[i_14, j_6]] = v133 * v127;
                        }
                        #[unproved]
                        for k0 in par(0..d_z'.len()) {
                            let mut sum = 0.0;
                            let v141 = k0 - 0;
                            for i_15 in 0.max(v141 - (n_2 - 1))..n_2.min(v141 - 0 + 1) {
                                let v151 = k0 - i_15;
                                if (v151 >= 0) & (v151 < n_2) {
                                    sum = sum + kept0[[i_15, v151]];
                                }
                            }
                            d_z'[k0] = sum;
                        }
                        for i_17 in par(0..n_2) {
                            let v161 = n_2 + i_17;
                            let v162 = x'[i_17];
                            let v163 = x'[i_17];
                            let v165 = d_z'[v161];
                            d_z'[v161] = 0.0;
                            d_x'[i_17] += v165 * v162;
                            d_x'[i_17] += v165 * v163;
                        }
                        for i_19 in par(0..n_2) {
                            let v172 = d_z'[i_19];
                            d_z'[i_19] = 0.0;
                            d_x'[i_19] += v172;
                        }
                        pop(z);
                    }
                }
                copy(d_x', d_x);
                copy(d_a', d_a);
            }
        "#]],
    );
    same_and_right!(diagonals);
}

/// Neighbours, with those beyond the end clamped to it; and an index clamped on both sides.
#[program]
fn clamped_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let left = x[i.max(1) - 1];
        let right = x[(i + 1).min(n - 1)];
        y[i] = left * right - x[i] + a[[i, 0]] * x[(i + 3).max(5).min(n - 1)];
    }
}
step!(clamped, clamped_step);

#[test]
fn elements_at_which_an_index_is_clamped_sum_over_all_that_lie_beyond() {
    check(
        clamped().grad(clamped::loss).wrt(clamped::x),
        expect![[r#"
                for i_5 in par(0..v43) {
                    let v74 = d_loss'[[]] * (1.0 + 0.1 * i_5 as f64);
                    let v75 = v74 * x'[i_5];
                    d_x'[i_5] += v74 * x'[i_5];
                    d_x'[i_5] += v75;
                }
                backward loop 0 {
                    for _t_back in from..to {
                        let n_2 = x'.len();
                        pop(x');
                        for i_7 in par(0..x'.len()) {
                            let v95 = d_x'[i_7];
                            d_y'[i_7] = v95 * 0.2;
                            d_x'[i_7] = v95 * 0.6;
                        }
                        for i_9 in par(0..n_2) {
                            let left_2 = x'[i_9.max(1) - 1];
                            let right_2 = x'[(i_9 + 1).min(n_2 - 1)];
                            let v126 = d_y'[i_9];
                            d_x'[i_9] += -v126;
                            kept0[i_9] = v126 * left_2;
                            kept1[i_9] = v126 * right_2;
                        }
                        #[unproved]
                        for k0 in par(0..d_x'.len()) {
                            let mut sum = 0.0;
                            let v138 = x'.len() - 1;
                            if (k0 == v138) | (k0 == 5) {
                                #[sum(sum)]
                                for i_10 in 0..n_2 {
                                    if (i_10 + 3).max(5).min(x'.len() - 1) == k0 {
                                        sum = sum + d_y'[i_10] * a[[i_10, 0]];
                                    }
                                }
                            } else {
                                let v164 = k0 - 3;
                                if ((k0 < v138) & (k0 > 5)) & ((v164 >= 0) & (v164 < n_2)) {
                                    sum = sum + d_y'[v164] * a[[v164, 0]];
                                }
                            }
                            let v175 = sum;
                            let mut sum_2 = 0.0;
                            let v180 = x'.len() - 1;
                            if k0 == v180 {
                                #[sum(sum_2)]
                                for i_11 in 0..n_2 {
                                    if (i_11 + 1).min(x'.len() - 1) == k0 {
                                        sum_2 = sum_2 + kept0[i_11];
                                    }
                                }
                            } else {
                                let v196 = k0 - 1;
                                if (k0 < v180) & ((v196 >= 0) & (v196 < n_2)) {
                                    sum_2 = sum_2 + kept0[v196];
                                }
                            }
                            let v204 = sum_2;
                            let mut sum_3 = 0.0;
                            let v207 = k0 - -1;
                            if v207 == 1 {
                                #[sum(sum_3)]
                                for i_12 in 0..n_2 {
                                    if i_12.max(1) - 1 == k0 {
                                        sum_3 = sum_3 + kept1[i_12];
                                    }
                                }
                            } else {
                                if (v207 > 1) & ((v207 >= 0) & (v207 < n_2)) {
                                    sum_3 = sum_3 + kept1[v207];
                                }
                            }
                            d_x'[k0] += v175 + v204 + sum_3;
                        }
                    }
                }
                copy(d_x', d_x);
            }
        "#]],
    );
    same_and_right!(clamped);
}

/// The rest of the shapes: the same array at its own index too, in triangles, across, round, in strides, through
/// variables of the inner loop, and at an index that is data.
#[program]
fn own_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut sum = x[i];
        for k in 0..x.len() {
            sum += a[[i, k]] * x[k] * x[i] - 0.1 * x[k] * x[k];
        }
        y[i] = sum.cos() * x[i];
    }
}
step!(own, own_step);

#[program]
fn triangle_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut sum = 0.0;
        for k in 0..i {
            sum += a[[i, k]] * x[k];
            for q in k..i {
                sum += 0.1 * a[[k, q]] * x[q] * x[k];
            }
        }
        y[i] = sum.tanh();
    }
}
step!(triangle, triangle_step);

#[program]
fn across_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        let mut sum = a[[i, i]];
        for k in 0..x.len() {
            sum += a[[i, k]] * a[[k, i]] + a[[k, k]] * x[i];
        }
        y[i] = sum;
    }
}
step!(across, across_step);

#[program]
fn round_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut sum = 0.0;
        for k in 0..4 {
            sum += a[[i, 0]] * x[(i + k) % n] * x[(i + n - k % n) % n];
        }
        y[i] = sum;
    }
}
step!(round, round_step);

#[program]
fn stride_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n / 2) {
        let mut sum = 0.0;
        for k in 0..2 {
            sum += a[[0, i]] * x[2 * i + k].sin();
        }
        for k in 0..n / 2 {
            sum += x[n - 1 - k] * a[[0, i]];
        }
        y[i] = sum * sum;
    }
}
step!(stride, stride_step);

#[program]
fn variable_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut sum = 0.0;
        let scale = x[i].exp();
        for k in 0..n {
            let mut t = x[k];
            for _q in 0..3 {
                t = t * t * 0.5 + a[[k, i]] * scale;
            }
            if t > 0.2 {
                t = t.sqrt();
            }
            sum += t;
        }
        y[i] = sum / ((n + 1) as f64);
    }
}
step!(variable, variable_step);

#[program]
fn data_step(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
    let n = x.len();
    for i in par(0..n) {
        let mut sum = 0.0;
        for k in 0..n {
            sum += x[(3 * k + i * i) % n] * a[[k, i]];
        }
        y[i] = sum;
    }
}
step!(data, data_step);

#[test]
fn other_shapes_of_fibres_are_right_too() {
    same_and_right!(own);
    same_and_right!(triangle);
    same_and_right!(across);
    same_and_right!(round);
    same_and_right!(stride);
    same_and_right!(variable);
    same_and_right!(data);
}
