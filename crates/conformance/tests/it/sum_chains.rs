//! Loops inside iterations that add one term after the other: the same bits on every device, however the threads of a GPU share the terms.

use ebbtide_conformance::Input;
use ebbtide_ir::{Literal, Program, parse};

use crate::devices;

/// Bodies of `for i in par(0..n)` over a matrix `a` of `n` rows and `m` columns, a vector `x` of `m`, and `y` and `z` of `n`.
const BODIES: &[&str] = &[
    "let mut s = y[i]; for j in 0..m { s = s + a[[i, j]] * x[j]; } y[i] = s;",
    "let mut s = y[i]; for j in 0..m { s = a[[i, j]] * x[j] + s; } y[i] = s;",
    "let mut s = 0.0; let mut t = y[i]; for j in 0..m { let d = x[j] - a[[i, j]]; s = s + d * d; t = t - d; } y[i] = s; z[i] = t;",
    "let mut s = y[i]; let mut t = 0.0; for j in 3..m { if x[j] > 0.5 { s = s + a[[i, j]]; } else { t = t + x[j]; } } y[i] = s + t;",
    "let mut s = y[i]; for j in 1..m { let mut d = x[j]; for k in 0..3 { d = d * 0.5 + x[j - 1]; } s = s + d; } y[i] = s;",
    "let mut s = y[i]; for r in 0..2 { for j in 0..m { s = s + a[[i, j]] * x[m - 1 - j]; } s = s * 0.5; } y[i] = s;",
    "let mut s = y[i]; for j in 0..m { s = s + x[j]; } for j in 0..m { s = s - a[[i, j]]; } if s > 0.5 { y[i] = s; }",
    "let mut s = y[i]; let mut t = 0.0; let mut u = 0.0; let mut v = 0.0; for j in 0..m { let d = a[[i, j]]; s = s + d; t = t + d * x[j]; u = u - d; v = v + x[j]; } y[i] = s; z[i] = (t + u) * v;",
    // Whose terms depend on what is added, or on one another.
    "let mut s = y[i]; for j in 0..m { s = s + a[[i, j]] * s * 0.5; } y[i] = s;",
    "let mut s = y[i]; let mut t = 0.5; for j in 0..m { t = t * x[j]; s = s + t; } y[i] = s + t;",
    "let mut s = y[i]; for j in 0..m { s = s + x[j]; if s > 2.5 { s = s - 2.5; } } y[i] = s;",
    "let mut s = y[i]; for j in 0..m { s = s + x[j]; z[i] = s; } y[i] = s;",
];

/// A loop after the other.
fn program(ty: &str) -> Program {
    let mut loops = String::new();
    for body in BODIES {
        loops += &format!("for i in par(0..n) {{ {body} }}\n");
    }
    if ty == "f32" {
        loops = loops.replace("0.5", "0.5f32").replace("0.0", "0.0f32").replace("2.5", "2.5f32");
    }
    let text = format!(
        "program chains(a: &Array2<{ty}>, x: &Array1<{ty}>, y: &mut Array1<{ty}>, z: &mut Array1<{ty}>) {{ let n = y.len(); let m = x.len();\n{loops}}}"
    );
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
pub fn chains_of_additions_are_the_same_everywhere() {
    for ty in ["f32", "f64"] {
        let program = program(ty);
        for [n, m] in
            [[1, 64], [3, 63], [2, 65], [7, 200], [40, 129], [130, 300], [1, 5000], [500, 70], [0, 90]]
        {
            let shapes = [vec![n, m], vec![m], vec![n], vec![n]];
            let inputs: Vec<Input> =
                shapes.into_iter().zip(1..).map(|(shape, seed)| Input::Array(shape, seed)).collect();
            devices::check(&program, &inputs).unwrap_or_else(|e| panic!("{ty} {n} {m}: {e}"));
        }
    }
}

/// A chain that ends in a fault, and one over indices at the end of their type.
#[test]
pub fn a_chain_that_meets_a_fault_is_an_error_everywhere() {
    let text = "program faulty(x: &Array1<f64>, y: &mut Array1<f64>, m: usize, from: usize) {
    for i in par(0..y.len()) {
        let mut s = y[i];
        for j in from..m {
            s = s + x[j % 100] / ((j % 7) as f64) + x[j - from];
        }
        y[i] = s;
    }
}";
    let program = parse(text).unwrap();
    let end = i64::MAX;
    for (length, m, from, faults) in [
        (300, 300, 0, false),
        (100, 300, 0, true),
        (100, end, end - 90, false),
        (100, end, end - 130, true),
        (99, 150, 20, true),
    ] {
        let scalar = |n: i64| Input::Scalar(Literal::index(n));
        let inputs = [Input::Array(vec![length], 1), Input::Array(vec![6], 2), scalar(m), scalar(from)];
        assert_eq!(devices::check(&program, &inputs).is_err(), faults, "{length} {m}");
    }
}
