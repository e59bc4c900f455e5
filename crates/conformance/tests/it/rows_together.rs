//! Loops over several ranges with loops inside, which take several rows at a time: the same bits as on the interpreter, however many rows
//! and columns there are, for every size of vectors, and one row at a time.

use std::process::Command;

use ebbtide_conformance::Input;
use ebbtide_ir::{Program, parse};

use crate::devices;

/// Bodies of `for (i, j) in par(0..n, 0..m)` over matrices `a` (`n` by `t`), `b` (`t` by `m`) and `w` (`m` by `t`), and a matrix `y`
/// (`n` by `m`) of their own.
const BODIES: &[&str] = &[
    "let mut s = y[[i, j]]; for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; } y[[i, j]] = s;",
    "let mut s = 0.0; for k in 0..t { s = s + a[[n - 1 - i, k]] * b[[t - 1 - k, j]]; } y[[i, j]] = s;",
    "let mut s = 0.0; for k in 0..t { s = s + a[[i, k]] * w[[j, k]]; } y[[i, j]] = s;",
    "let mut s = 0.0; for k in 0..t { s = s + a[[i, k]] * b[[k, m - 1 - j]]; } y[[i, j]] = s;",
    "let mut s = 0.0; let mut q = 1.0; for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; q = q * 0.5 - b[[k, j]]; } y[[i, j]] = s * q;",
    "let mut s = 0.0; for k in 0..t { let mut q = 0.0; for r in 0..3 { q = q + b[[k, j]] * a[[i, k]]; } s = s + q; } y[[i, j]] = s.tanh();",
    "let mut s = 0.0; for k in 0..i.min(t) { s = s + a[[i, k]] * b[[k, j]]; } y[[i, j]] = s;",
    "let mut s = 0.0; if i < n { for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; } } y[[i, j]] = s;",
    "let mut s = 0.0; if i + 3 < n { for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; } } y[[i, j]] = s;",
    "let mut s = 0.0; if a[[i, 0]] > 0.0 { for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; } } y[[i, j]] = s;",
    "let mut s = 0.0; for k in 0..t { if a[[i, k]] > 0.0 { s = s + b[[k, j]]; } } y[[i, j]] = s;",
    "let mut s = a[[i, 0]]; for k in 0..t { if b[[k, 0]] > 0.0 { s = s - b[[k, j]]; } } y[[i, j]] = s;",
    "let mut s = 0.0; for k in 0..t { s = s + a[[i, k]].max(b[[k, j]]); y[[i, j]] = y[[i, j]] + s; }",
    "let mut s = 0.0; #[sum(s)] for k in 0..t { s = s + a[[i, k]] * b[[k, j]]; } y[[i, j]] = s;",
];

/// A loop after the other, and the vector before each of which every column of a matrix has its product; one range is for one row.
fn program(ty: &str) -> (Program, usize) {
    let mut loops = String::new();
    for (number, body) in BODIES.iter().enumerate() {
        let body = body.replace("y[", &format!("y{number}["));
        loops += &format!("for (i, j) in par(0..n, 0..m) {{ {body} }}\n");
    }
    loops += "for j in par(0..m) { let mut s = v[j]; for k in 0..t { s = s + b[[k, j]] * a[[0, k]]; } v[j] = s; }\n";
    loops += "for j in par(0..m) { let mut s = v[j]; for k in 0..t { s = s + w[[j, k]] * a[[0, k]]; } v[j] = s; }\n";
    if ty == "f32" {
        for number in ["0.5", "0.0", "1.0"] {
            loops = loops.replace(number, &format!("{number}f32"));
        }
    }
    let results: String = (0..BODIES.len()).map(|k| format!(", y{k}: &mut Array2<{ty}>")).collect();
    let text = format!(
        "program rows(a: &Array2<{ty}>, b: &Array2<{ty}>, w: &Array2<{ty}>, v: &mut Array1<{ty}>{results}) {{
         let n = a.dim(0); let t = a.dim(1); let m = b.dim(1);\n{loops}}}"
    );
    (parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), BODIES.len())
}

#[test]
pub fn rows_side_by_side_are_the_same_everywhere() {
    for ty in ["f32", "f64"] {
        let (program, results) = program(ty);
        for [n, t, m] in [[1, 5, 8], [2, 3, 64], [4, 1, 33], [5, 9, 3], [7, 8, 31], [9, 2, 130], [16, 17, 71]]
        {
            let shapes = [vec![n, t], vec![t, m], vec![m, t], vec![m]];
            let shapes = shapes.into_iter().chain(vec![vec![n, m]; results]);
            let inputs: Vec<Input> = shapes.zip(1..).map(|(shape, seed)| Input::Array(shape, seed)).collect();
            devices::check(&program, &inputs).unwrap_or_else(|e| panic!("{ty} {n} × {t} × {m}: {e}"));
        }
    }
}

#[test]
fn the_same_holds_for_every_size_of_vectors_and_for_rows_one_by_one() {
    let settings = [
        ("EBBTIDE_VECTOR_BYTES", "16"),
        ("EBBTIDE_VECTOR_BYTES", "32"),
        ("EBBTIDE_WITHOUT", "jam rows"),
        ("EBBTIDE_WITHOUT", "jam"),
    ];
    for (setting, value) in settings {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "rows_together::rows_side_by_side_are_the_same_everywhere"])
            .env(setting, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{setting} {value}: {said}");
    }
}
