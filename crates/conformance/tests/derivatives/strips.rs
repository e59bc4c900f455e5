//! Parallel loops that overwrite as many elements as only the run knows: tree sums, levels, prefixes of lists.

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::check_gradient;
use ebbtide_ir::{Literal, parse, verify_source};

/// Holds all derivatives of a program of this body against the oracle's. `count` has small numbers.
fn check(body: &str) {
    let header = "program p(x: &mut Array1<f64>, y: &mut Array2<f64>, z: &mut Array3<f64>, f: &mut Array1<f32>, count: &mut Array1<i32>, w: &Array1<f64>, loss: &mut Array0<f64>)";
    let end = "for i in par(0..x.len()) { loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)); }
         for (i, j) in par(0..y.dim(0), 0..y.dim(1)) { loss[[]] += y[[i, j]] * y[[i, j]] * (1.0 + 0.1 * (j as f64)); }
         for (i, j, k) in par(0..z.dim(0), 0..z.dim(1), 0..z.dim(2)) { loss[[]] += z[[i, j, k]] * z[[i, j, k]] * w[k]; }
         for i in par(0..f.len()) { loss[[]] += (f[i] * f[i]) as f64; }";
    let program = verify_source(&parse(&format!("{header} {{ {body} {end} }}")).unwrap()).unwrap();
    let count = [3, 0, 5, 1, 2, 4, 7, 2].map(Literal::from).to_vec();
    let inputs = [
        Input::Array(vec![16], 3),
        Input::Array(vec![5, 6], 5),
        Input::Array(vec![3, 4, 5], 11),
        Input::Array(vec![8], 13),
        Input::Elements(vec![8], count),
        Input::Array(vec![16], 7),
        Input::Array(vec![], 9),
    ];
    check_gradient(&program, &inputs, "loss", &["x", "y", "z", "w"]);
}

#[test]
fn halves_of_halves() {
    check(
        "for t in 0..3 { let mut m = x.len() / 2;
            while m > 0 { for j in par(0..m) { x[j] += 0.5 * x[j + m] * x[j]; } m = m / 2; }
            x[3] = x[3] * w[t]; }",
    );
    // By itself, and in a loop that counts.
    check(
        "let mut m = x.len() / 2; while m > 0 { for j in par(0..m) { x[j] = x[j] * x[j + m]; } m = m / 2; }",
    );
    check(
        "for k in 0..4 { let mut m = 8; for l in 0..k { m = m / 2; } for j in par(0..m) { x[j] = x[j] * x[j + m] * w[k]; } }",
    );
}

#[test]
fn levels_in_one_array() {
    check(
        "for t in 0..2 { let mut start = 0; let mut len = 8;
            while len > 1 { let half = len / 2;
                for i in par(0..half) { x[start + len + i] = x[start + 2 * i] * x[start + 2 * i + 1] + 0.5 * x[start + len + i]; }
                start = start + len; len = half; }
            x[0] = x[0] * x[start]; }",
    );
}

#[test]
fn prefixes_that_data_ends() {
    check(
        "for t in 0..4 { let m = count[t] as usize; count[t] = count[t + 1];
            for j in par(0..m) { x[j] = x[j] * x[j] * w[t]; } }",
    );
    check("for j in par(0..count[2] as usize) { x[j] = x[j] * x[j]; } count[2] = count[1];");
    // An iteration writes two elements, one of them twice; beginnings are data too.
    check(
        "for t in 0..4 { let m = count[t] as usize; count[t] = count[3];
            for j in par(m..7) { x[j] = x[j] * w[t]; x[j + 8] = x[j] * x[j + 8]; x[j] = x[j] * x[j + 8]; } }",
    );
    check(
        "for t in 0..4 { if x[t] > 0.0 { let m = count[t] as usize; count[t] = count[3];
            for j in par(0..m) { x[j] = x[j] * x[j] * w[t]; f[j] = f[j] * f[j]; } } }",
    );
}

#[test]
fn slabs_that_data_ends() {
    check(
        "for t in 0..4 { let m = count[t] as usize; count[t] = count[7];
            for (i, j) in par(1..m.min(5), 0..m.min(6)) { y[[i, j]] = y[[i, j]] * y[[i, j]] * w[t]; }
            for (i, j) in par(0..2, m..6) { y[[i, j]] = y[[i, j]] * w[j]; } }",
    );
    check(
        "for t in 0..4 { let m = (count[t + 1] as usize).min(4); count[t + 1] = count[7];
            for (i, j, k) in par(0..3, 1..m, 0..m) { z[[i, j, k]] = z[[i, j, k]] * w[t] + z[[i, j, k]] * z[[i, j, k]]; } }",
    );
    check(
        "for t in 0..4 { let m = (count[t] as usize).min(5); count[t] = count[7];
            for (i, k) in par(0..3, 1..m) { z[[i, 2, k]] = z[[i, 2, k]] * w[t] * z[[i, 2, k]]; z[[i, 0, k]] = z[[i, 2, k]] * z[[i, 0, k]]; } }",
    );
}

#[test]
fn short_ranges_and_halves_of_known_length() {
    check(
        "let h = x.len() / 2; for t in 0..3 {
            for i in par(0..3) { x[i] = x[i] * x[i + 3] * w[t]; }
            for i in par(0..h) { x[i] = x[i] * x[i + h]; }
            for i in par(h..x.len()) { x[i] = x[i] * x[i - h] + w[t]; }
            for i in par(0..x.len() / 4) { x[4 * i] = x[4 * i] * x[4 * i + 1]; x[4 * i + 2] = x[4 * i] * x[4 * i + 2]; }
            for (i, j) in par(0..y.dim(0) / 2, 0..y.dim(1)) { y[[i, j]] = y[[i, j]] * y[[i + y.dim(0) / 2, j]]; }
            for (i, j) in par(0..y.dim(0), 1..3) { y[[i, j]] = y[[i, j]] * y[[i, j + 2]]; } }",
    );
}
