//! Loops inside iterations that go along rows: the same bits as on the interpreter, however many rows and columns there are, for
//! every size of vectors.

use std::process::Command;

use ebbtide_conformance::Input;
use ebbtide_ir::{Program, parse};

use crate::devices;

/// Bodies of `for i in par(0..w.dim(0))` over a matrix `w` with two columns more than `n`, `x` as long as `n`, and `y` as long as a
/// column; those that write rows have a matrix `z` of their own.
const BODIES: &[&str] = &[
    "let mut s = y[i]; for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = s;",
    "let mut s = y[i]; for k in 0..n { let q = n - 1 - k; s = s + w[[i, q]] * x[q]; } y[i] = s;",
    "let mut s = y[i]; for k in 0..n { s = s * 0.5 + (w[[i, k + 2]] - w[[i, k]]); } y[i] = s;",
    "let mut s = 0.0; #[sum(s)] for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = y[i] + s;",
    "let mut s = y[i]; for k in 0..n { if x[k] > 0.0 { s = s + w[[i, k]]; } } y[i] = s;",
    "for r in 0..3 { let mut s = 0.0; for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = y[i] + s; }",
    "let mut s = y[i]; for k in n / 8 * 8..n { s = s + w[[i, k]] * x[k]; } y[i] = s;",
    "let mut s = y[i]; for k in n + 5..n { s = s + w[[i, k]] * x[k]; } y[i] = s;",
    "let mut s = y[i]; for k in n + 5..n { s = s + w[[i, n + 1000000000000]] * x[k]; } y[i] = s;",
    "let mut s = y[i]; for k in 0..n { s = s * 0.5 + w[[i, k]]; z[[i, k + 1]] = s * x[k]; }",
    "let s = y[i]; for k in 0..n { z[[i, k]] += s * x[k]; }",
    "let s = y[i]; for k in 0..n { z[[i, n - k]] += s * w[[i, k]]; }",
    "let s = y[i]; for k in 0..n { z[[i, k + 1]] = z[[i, k]] * 0.5 + w[[i, k]] * s; }",
    "for k in 0..n { z[[i, k]] += w[[i, k]]; z[[i, k + 1]] += x[k]; }",
    "for k in 1..n { z[[i, k + 1]] = z[[i, k]] * 0.5 - z[[i, k - 1]] * w[[i, k]]; z[[i, k]] += x[k]; }",
    "for k in 0..n { let q = n - k; let e = z[[i, q + 1]]; z[[i, q + 1]] = 0.0; z[[i, q]] += e * w[[i, k]]; }",
    "for k in 1..n { let q = n - k; let e = z[[i, q]]; z[[i, q]] = w[[i, q]]; z[[i, q - 1]] += e; z[[i, q]] += x[k]; }",
];

/// A loop after the other, and how many matrices they write.
fn program(ty: &str) -> (Program, usize) {
    let (mut loops, mut written) = (String::new(), 0);
    for body in BODIES {
        let z = format!("z{written}[");
        written += usize::from(body.contains("z["));
        loops += &format!("for i in par(0..w.dim(0)) {{ {} }}\n", body.replace("z[", &z));
    }
    if ty == "f32" {
        loops = loops.replace("0.5", "0.5f32").replace("0.0", "0.0f32");
    }
    let matrices: String = (0..written).map(|k| format!(", z{k}: &mut Array2<{ty}>")).collect();
    let text = format!(
        "program rows(w: &Array2<{ty}>, x: &Array1<{ty}>, y: &mut Array1<{ty}>{matrices}) {{ let n = x.len();\n{loops}}}"
    );
    (parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), written)
}

#[test]
pub fn loops_along_rows_are_the_same_everywhere() {
    for ty in ["f32", "f64"] {
        let (program, written) = program(ty);
        for [rows, n] in [[1, 5], [8, 8], [40, 0], [41, 1], [70, 7], [33, 17], [130, 37]] {
            let matrices = vec![vec![rows, n + 2]; written];
            let shapes = [vec![rows, n + 2], vec![n], vec![rows]].into_iter().chain(matrices);
            let inputs: Vec<Input> = shapes.zip(1..).map(|(shape, seed)| Input::Array(shape, seed)).collect();
            devices::check(&program, &inputs).unwrap_or_else(|e| panic!("{ty} {rows} × {n}: {e}"));
        }
    }
}

#[test]
fn the_same_holds_for_every_size_of_vectors_and_without_tiles() {
    for (setting, value) in
        [("EBBTIDE_VECTOR_BYTES", "16"), ("EBBTIDE_VECTOR_BYTES", "32"), ("EBBTIDE_WITHOUT", "row tiles")]
    {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "row_tiles::loops_along_rows_are_the_same_everywhere"])
            .env(setting, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{setting} {value}: {said}");
    }
}
