use ebbtide_conformance::Input;
use ebbtide_ir::{Literal, parse};

use crate::devices::check;
use crate::programs;

#[test]
pub fn pointwise_is_the_same_everywhere() {
    for n in [0, 1, 7, 8, 9, 100, 5000] {
        let inputs =
            [Input::Array(vec![n], 1), Input::Array(vec![n], 2), Input::Scalar(Literal::from(11usize))];
        check(&programs::pointwise(), &inputs).unwrap();
    }
}

#[test]
pub fn burgers_is_the_same_everywhere() {
    for n in [1, 2, 3, 17, 64, 1000, 9001] {
        for steps in [0usize, 1, 2, 7] {
            let inputs = [
                Input::Array(vec![n], 1),
                Input::Array(vec![n], 2),
                Input::Scalar(Literal::from(0.1)),
                Input::Scalar(Literal::from(0.01)),
                Input::Scalar(Literal::from(steps)),
            ];
            check(&programs::burgers(), &inputs).unwrap();
        }
    }
}

#[test]
pub fn wave_is_the_same_everywhere() {
    for (n, m) in [(3, 3), (8, 50), (70, 90)] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![n, m], 2),
            Input::Array(vec![n, m], 3),
            Input::Array(vec![9], 4),
            Input::Array(vec![9, m], 5),
            Input::Scalar(Literal::from(9usize)),
        ];
        check(&programs::wave(), &inputs).unwrap();
    }
}

#[test]
pub fn reductions_are_the_same_everywhere() {
    for (n, m) in [(0, 3), (1, 1), (3, 100), (200, 33), (2, 9000), (1500, 20)] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![], 2),
            Input::Array(vec![], 3),
            Input::Array(vec![2], 4),
            Input::Array(vec![], 5),
        ];
        check(&programs::reductions(), &inputs).unwrap();
    }
}

#[test]
pub fn an_index_out_of_bounds_is_an_error_that_names_it() {
    // Nine steps, but a source of five.
    let inputs = [
        Input::Array(vec![8, 8], 1),
        Input::Array(vec![8, 8], 2),
        Input::Array(vec![8, 8], 3),
        Input::Array(vec![5], 4),
        Input::Array(vec![9, 8], 5),
        Input::Scalar(Literal::from(9usize)),
    ];
    let error = check(&programs::wave(), &inputs).unwrap_err();
    assert!(
        error.contains("index 5 is out of bounds for dimension 0 of `source`, whose extent is 5"),
        "{error}"
    );
}

#[test]
pub fn ordered_sums_at_elements_that_data_choose_are_the_same_everywhere() {
    for (n, m, cells) in
        [(0, 3, 5), (1, 1, 1), (3, 100, 7), (1, 33, 1000), (300, 33, 2), (7, 20011, 300), (2, 70000, 1)]
    {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![cells], 2),
            Input::Array(vec![cells], 3),
            Input::Array(vec![cells], 4),
            Input::Array(vec![n, m], 5),
        ];
        check(&programs::deposits(), &inputs).unwrap();
    }
}

/// Iterations add as often as data say: in nested loops, in loops with conditions, in branches, into two arrays.
#[test]
pub fn ordered_sums_with_as_many_terms_as_data_say_are_the_same_everywhere() {
    let program = programs::counted_deposits();
    // The last ones have iterations with more terms than a GPU notes at a time, between others.
    for (n, m, cells, most) in [
        (0, 3, 5, 4),
        (1, 1, 1, 100),
        (3, 100, 7, 9),
        (300, 33, 1000, 40),
        (2, 7000, 300, 70),
        (1, 2, 10, 700_000),
    ] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![cells], 2),
            Input::Array(vec![3, 5], 3),
            Input::Scalar(Literal::from(most as usize)),
        ];
        check(&program, &inputs).unwrap();
    }
}

/// The loop bound of one iteration is out of bounds: it is an error on all devices, and not a short sum.
#[test]
pub fn a_count_of_terms_that_is_out_of_bounds_is_an_error_that_names_it() {
    let program = parse(
        "program p(first: &Array1<f64>, y: &mut Array1<f64>) {
            for i in par(0..first.len()) {
                for k in 0..(first[i + 1].abs() * 9.0) as usize {
                    y[k % y.len()] += first[i];
                }
            }
        }",
    )
    .unwrap();
    let error = check(&program, &[Input::Array(vec![900], 1), Input::Array(vec![4], 2)]).unwrap_err();
    let expected = "index 900 is out of bounds for dimension 0 of `first`, whose extent is 900";
    assert!(error.contains(expected), "{error}");
}

/// Iterations take long, so that a GPU keeps their terms and adds them later; some have none.
#[test]
pub fn sums_over_long_iterations_are_the_same_everywhere() {
    let program = programs::long_sums();
    for (n, m) in [(0, 3), (1, 1), (3, 100), (2, 9000), (1500, 20), (70_001, 3), (2, 150_003), (31, 4500)] {
        let inputs = [
            Input::Array(vec![n, m], 1),
            Input::Array(vec![], 2),
            Input::Array(vec![], 3),
            Input::Array(vec![2], 4),
        ];
        check(&program, &inputs).unwrap();
    }
}

/// Sums inside iterations whose terms lie side by side in memory: a CPU takes them in vectors along the lanes of leaves, parts of
/// vectors at their ends, in two sums and in one, with what is the same for all terms and what depends on their number.
#[test]
pub fn sums_along_rows_are_the_same_everywhere() {
    for ty in ["f32", "f64"] {
        let program = parse(&format!(
            "program p(a: &Array2<{ty}>, x: &Array1<{ty}>, from: usize, y: &mut Array2<{ty}>) {{
                for i in par(0..a.dim(0)) {{
                    let mut s = x[0];
                    let mut t = x[0];
                    #[sum(s, t)]
                    for j in from..x.len() {{
                        let v = a[[i, j]] * x[j] - x[i];
                        s = s + select(v > x[0], v, (j as {ty}).sqrt());
                        t = t + x[i] / v;
                    }}
                    y[[i, 0]] = s;
                    let mut w = t;
                    #[sum(w)]
                    for k in from..x.len() - 1 {{
                        w = w + a[[i, k + 1]] * a[[k, i]];
                    }}
                    y[[i, 1]] = w;
                }}
            }}"
        ))
        .unwrap();
        let lengths = [1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 63, 1100];
        for (n, from) in lengths.into_iter().flat_map(|n| [(n, 0), (n, n / 2)]) {
            let inputs = [
                Input::Array(vec![n, n], 1),
                Input::Array(vec![n], 2),
                Input::Scalar(Literal::from(from)),
                Input::Array(vec![n, 2], 3),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

#[test]
pub fn products_beside_sums_of_all_kinds_are_the_same_everywhere() {
    for n in [1, 5, 40, 150] {
        let inputs = [
            Input::Array(vec![n, n], 1),
            Input::Array(vec![n, n], 2),
            Input::Array(vec![7 * n], 3),
            Input::Array(vec![], 4),
        ];
        check(&programs::products_and_sums(), &inputs).unwrap();
    }
}

/// Loops over elements of products, over all of them and some, before and behind others that touch them: on a GPU they keep to the blocks
/// that have the elements.
#[test]
pub fn loops_over_elements_of_products_are_the_same_everywhere() {
    for (ty, of) in [("f32", "f32"), ("f64", "")] {
        let program = parse(&format!(
            "program p(a: &Array2<{ty}>, b: &Array2<{ty}>, c: &mut Array2<{ty}>, d: &mut Array2<{ty}>, u: &mut Array2<{ty}>, steps: usize) {{
                let n = c.dim(0);
                let m = c.dim(1);
                for t in 0..steps {{
                    add_matmul(a, b, c);
                    add_matmul(a, b, d);
                    for (i, j) in par(0..n, 0..m) {{
                        d[[i, j]] = d[[i, j]] * 0.5{of} + u[[i, j]];
                    }}
                    for (i, j) in par(n / 3..n, m / 2..m) {{
                        u[[i, j]] = d[[i, j]] - u[[i, j]];
                    }}
                    for (i, j) in par(0..n, 0..m) {{
                        c[[i, j]] = (c[[i, j]] * 0.01{of}).tanh();
                    }}
                    if t % 2 == 0 {{
                        matmul(a, b, u);
                        for (i, j) in par(0..n, 0..m) {{
                            u[[i, j]] = u[[i, j]] + c[[n - 1 - i, j]];
                        }}
                    }}
                    for (i, j) in par(0..n, 0..m) {{
                        d[[i, j]] = u[[i, m - 1 - j]] * 0.25{of} + d[[i, j]];
                    }}
                }}
            }}"
        ))
        .unwrap();
        for (n, m, k) in [(0, 3, 2), (1, 1, 1), (5, 3, 0), (33, 17, 40), (64, 150, 64), (300, 70, 200)] {
            let inputs = [
                Input::Array(vec![n, k], 1),
                Input::Array(vec![k, m], 2),
                Input::Array(vec![n, m], 3),
                Input::Array(vec![n, m], 4),
                Input::Array(vec![n, m], 5),
                Input::Scalar(Literal::from(4usize)),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

/// Columns of short rows that share what their sums are made of: on a GPU a team takes them side by side. Some take branches alone, with a
/// sum in one of them; rows are as long as the source says, or as an array is.
#[test]
pub fn columns_of_short_rows_are_the_same_everywhere() {
    for (ty, of) in [("f32", "f32"), ("f64", "")] {
        for (from, to, columns) in
            [("0", "3", 3), ("1", "3", 3), ("0", "4", 4), ("0", "x.dim(1)", 2), ("0", "x.dim(1)", 3)]
        {
            let program = parse(&format!(
                "program p(x: &Array2<{ty}>, m: &Array1<{ty}>, y: &mut Array2<{ty}>, z: &mut Array2<{ty}>) {{
                    let n = x.dim(0);
                    for (i, k) in par(0..y.dim(0), {from}..{to}) {{
                        let mut f = 0.0{of};
                        let mut g = 0.0{of};
                        #[sum(f, g)]
                        for j in 0..n {{
                            let d = x[[j, 0]] - x[[i, 0]];
                            let e = d * d + 0.01{of};
                            let w = m[j] / (e * e.sqrt());
                            f = f + w * (x[[j, k]] - x[[i, k]]);
                            g = g + w;
                        }}
                        if k == 1 {{
                            #[sum(g)]
                            for j in 0..n {{
                                g = g + m[j] * x[[j, k]];
                            }}
                        }}
                        if k < 3 {{
                            #[sum(f)]
                            for j in 1..n {{
                                f = f + (m[j] / m[j - 1]).tanh() * (x[[j, k]] / m[i]);
                            }}
                        }}
                        y[[i, k]] = y[[i, k]] * 0.5{of} + f;
                        if k != 1 {{
                            z[[i, k]] = g;
                        }}
                    }}
                }}"
            ))
            .unwrap();
            for (rows, n) in [(0, 3), (1, 1), (2, 17), (40, 100), (5, 2500)] {
                let shape = vec![rows, columns];
                let inputs = [
                    Input::Array(vec![n, columns], 1),
                    Input::Array(vec![n], 2),
                    Input::Array(shape.clone(), 3),
                    Input::Array(shape, 4),
                ];
                check(&program, &inputs).unwrap();
            }
        }
    }
}

/// Functions of what loops read that are the same for all iterations, in loops that lanes run alike, and in branches and loops that they do
/// not: on a CPU a vector of them is computed ahead.
#[test]
pub fn functions_that_iterations_share_are_the_same_everywhere() {
    for (ty, of) in [("f32", "f32"), ("f64", "")] {
        let program = parse(&format!(
            "program p(w: &Array2<{ty}>, x: &Array1<{ty}>, y: &mut Array1<{ty}>, loss: &mut Array0<{ty}>) {{
                let m = w.dim(0);
                let n = w.dim(1);
                for i in par(0..y.len()) {{
                    let mut s = y[i];
                    let mut t = 1.0{of};
                    for j in 0..m {{
                        for k in 0..n {{
                            s = s + w[[j, k]].exp() * y[i];
                            s = s - (w[[j, n - 1 - k]] * x[j]).tanh();
                            t = (t * 0.5{of}).tanh();
                        }}
                        s = s * x[j].sin() + w[[j, 0]].sqrt();
                        if y[i] > 0.5{of} {{
                            for k in 0..n {{
                                s = s + w[[j, k]].cos();
                            }}
                        }}
                        for k in 0..i % 3 {{
                            s = s + (w[[j, 0]] + s).atan();
                        }}
                    }}
                    loss[[]] += s * s;
                    y[i] = s + t;
                }}
            }}"
        ))
        .unwrap();
        for (m, n, count) in [(0, 1, 40), (1, 1, 31), (2, 3, 32), (40, 2, 33), (3, 70, 100), (2, 33, 3000)] {
            let inputs = [
                Input::Array(vec![m, n], 1),
                Input::Array(vec![m], 2),
                Input::Array(vec![count], 3),
                Input::Array(vec![], 4),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

/// Quotients and roots in long sums, of numbers as they are mostly, of zeros, and of those near the ends of their type: on a GPU most are
/// computed without a look at the others.
#[test]
pub fn quotients_and_roots_in_sums_are_the_same_everywhere() {
    for (ty, of, small, large) in [("f32", "f32", "1.0e-39", "1.0e38"), ("f64", "", "1.0e-309", "1.0e307")] {
        let program = parse(&format!(
            "program p(x: &Array2<{ty}>, m: &Array1<{ty}>, y: &mut Array2<{ty}>) {{
                let n = x.dim(0);
                for (i, k) in par(0..y.dim(0), 0..3) {{
                    let mut f = 0.0{of};
                    #[sum(f)]
                    for j in 0..n {{
                        let d = x[[j, 0]] - m[i];
                        let mut e = d * d;
                        if j % 50 == 7 {{
                            if i % 5 == 1 {{
                                e = 0.0{of};
                            }}
                            if i % 5 == 2 {{
                                e = e * {small}{of};
                            }}
                            if i % 5 == 3 {{
                                e = e * {large}{of};
                            }}
                        }}
                        f = f + m[j].abs() / e.sqrt() + e / (e + 1.0{of}) * x[[j, k]].abs() / (0.5{of} + e);
                    }}
                    y[[i, k]] = f;
                }}
            }}"
        ))
        .unwrap();
        for (rows, n) in [(1, 3), (5, 40), (33, 300), (5, 3000)] {
            let inputs = [
                Input::Array(vec![n, 3], 1),
                Input::Array(vec![n.max(rows)], 2),
                Input::Array(vec![rows, 3], 3),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

/// Beside sums at elements that data choose, with as many terms as the source or data say.
#[test]
pub fn sums_beside_ordered_sums_are_the_same_everywhere() {
    for times in ["2", "(v.abs() * 40.0) as usize"] {
        let program = parse(&format!(
            "program p(x: &Array2<f64>, y: &mut Array1<f64>, loss: &mut Array0<f64>, most: &mut Array0<f32>) {{
                for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {{
                    let v = x[[i, j]];
                    for k in 0..{times} {{
                        y[(i * 5 + 3 * j + k * k) % y.len()] += v * (k as f64);
                    }}
                    loss[[]] += v * v;
                    if v > 0.25 {{
                        most[[]].max_assign(v as f32);
                    }}
                }}
            }}"
        ))
        .unwrap();
        for (n, m, cells) in [(0, 3, 5), (1, 1, 1), (300, 33, 2), (7, 20_011, 300), (41_000, 5, 1000)] {
            let inputs = [
                Input::Array(vec![n, m], 1),
                Input::Array(vec![cells], 2),
                Input::Array(vec![], 3),
                Input::Array(vec![], 4),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

/// Iterations that run side by side add to elements that they share, several times each, and where a condition holds.
#[test]
pub fn sums_over_iterations_side_by_side_are_the_same_everywhere() {
    for ty in ["f64", "f32"] {
        for rest in ["", "if v > sum { q[t] += v; }", "q[t].max_assign(v);", "loss[[]] += v;"] {
            let program = parse(&format!(
                "program p(x: &Array2<{ty}>, y: &mut Array1<{ty}>, q: &mut Array1<{ty}>, loss: &mut Array0<{ty}>) {{
                    for i in par(0..x.dim(1)) {{
                        let mut sum = x[[0, i]];
                        for t in 0..x.dim(0) {{
                            let v = x[[t, i]] * sum;
                            y[x.dim(0) - 1 - t] += v;
                            sum = sum * x[[t, i]] + v;
                            y[x.dim(0) - 1 - t] += sum;
                            {rest}
                        }}
                    }}
                }}"
            ))
            .unwrap();
            for (n, m) in [(1, 0), (1, 1), (3, 7), (5, 67), (40, 1_003), (3, 40_007)] {
                let inputs = [
                    Input::Array(vec![n, m], 1),
                    Input::Array(vec![n], 2),
                    Input::Array(vec![n], 3),
                    Input::Array(vec![], 4),
                ];
                check(&program, &inputs).unwrap();
            }
        }
    }
}

/// Conjugate gradients: sums of a time loop that are read right behind it, and loops over their domain, which has one leaf, several,
/// pieces of rows, and more leaves than a grid has blocks.
#[test]
pub fn sums_of_a_time_loop_are_the_same_everywhere() {
    let program = |rank: usize| {
        let (ranges, at) = match rank {
            1 => ("i in par(0..n)", "[i]"),
            2 => ("(i, j) in par(0..n, 0..s.dim(1))", "[[i, j]]"),
            _ => ("(i, j, k) in par(0..n, 0..s.dim(1), 0..s.dim(2))", "[[i, j, k]]"),
        };
        let (next, shape) = match rank {
            1 => ("[(i + 1) % n]", "[n]"),
            2 => ("[[(i + 1) % n, j]]", "[n, x.dim(1)]"),
            _ => ("[[(i + 1) % n, j, k]]", "[n, x.dim(1), x.dim(2)]"),
        };
        parse(&format!(
            "program p(x: &mut Array{rank}<f32>, r: &mut Array{rank}<f32>, sums: &mut Array1<f32>, steps: usize) {{
                let n = x.dim(0);
                let mut s = Array{rank}::<f32>::zeros({shape});
                let mut q = Array{rank}::<f32>::zeros({shape});
                let mut total = Array0::<f32>::zeros([]);
                copy(r, s);
                for t in 0..steps {{
                    for {ranges} {{
                        q{at} = s{at} * 0.5f32 + s{next};
                    }}
                    let mut sq = Array0::<f32>::zeros([]);
                    for {ranges} {{
                        sq[[]] += s{at} * q{at};
                    }}
                    let alpha = 1.0f32 / (sq[[]] * sq[[]] + 1.0f32);
                    for {ranges} {{
                        x{at} += alpha * s{at};
                        r{at} = r{at} * 0.5f32 + alpha * q{at};
                    }}
                    for {ranges} {{
                        total[[]] += r{at} * r{at};
                    }}
                    let now = total[[]];
                    for {ranges} {{
                        s{at} = r{at} + s{at} / (now + 1.0f32);
                    }}
                    sums[t] = now;
                }}
            }}"
        ))
        .unwrap()
    };
    let shapes: [&[usize]; 10] = [
        &[0],
        &[7],
        &[1_025],
        &[20_001],
        &[5, 3],
        &[33, 100],
        &[64, 256],
        &[3, 9_000],
        &[401, 501],
        &[9, 31, 47],
    ];
    for shape in shapes {
        let array = |seed| Input::Array(shape.to_vec(), seed);
        let inputs = [array(1), array(2), Input::Array(vec![4], 3), Input::Scalar(Literal::index(4))];
        check(&program(shape.len()), &inputs).unwrap();
    }
}

/// In some steps all elements are different ones; in others, two terms far apart meet at one.
#[test]
pub fn ordered_sums_at_different_elements_are_the_same_everywhere() {
    let program = parse(
        "program p(x: &mut Array1<f64>, y: &mut Array1<f64>, z: &mut Array1<f32>, small: &mut Array1<i32>, steps: usize, twice: usize) {
            for t in 0..steps {
                for i in par(0..x.len()) {
                    let k = select((t == twice) & (i + 1 == x.len()), 0, i);
                    let at = (k * 7919 + t) % x.len();
                    y[at] += x[i];
                    z[at * 2] += x[i] as f32 * 0.5f32;
                    small[at].min_assign(i as i32);
                }
                for i in par(0..x.len()) {
                    x[i] = x[i] * 0.75 + y[i];
                }
            }
        }",
    )
    .unwrap();
    for n in [1, 100, 8192, 8193, 70_000] {
        for twice in [0, 1, 3] {
            let inputs = [
                Input::Array(vec![n], 1),
                Input::Array(vec![n], 2),
                Input::Array(vec![2 * n], 3),
                Input::Array(vec![n], 4),
                Input::Scalar(Literal::index(3)),
                Input::Scalar(Literal::index(twice)),
            ];
            check(&program, &inputs).unwrap();
        }
    }
}

/// Elements come in order, with few terms each or with many, in all iterations or in the first ones alone.
#[test]
pub fn ordered_sums_whose_elements_come_in_order_are_the_same_everywhere() {
    let program = parse(
        "program p(x: &Array1<f64>, y: &mut Array1<f64>, z: &mut Array1<f32>, w: &mut Array1<f64>) {
            for i in par(0..x.len()) {
                y[i / 3] += x[i];
                z[(i / 40).min(z.len() - 1)] += x[i] as f32;
                if i < 9000 {
                    w[i / 7] += x[i] * x[i];
                }
            }
        }",
    )
    .unwrap();
    for n in [1, 100, 9001, 20_011, 70_000] {
        let inputs = [
            Input::Array(vec![n], 1),
            Input::Array(vec![n / 3 + 1], 2),
            Input::Array(vec![50], 3),
            Input::Array(vec![9000], 4),
        ];
        check(&program, &inputs).unwrap();
    }
}
