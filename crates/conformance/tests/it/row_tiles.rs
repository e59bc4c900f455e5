//! Loops inside iterations that go along rows: the same bits as on the interpreter, however many rows and columns there are, for
//! every size of vectors.

use std::process::Command;

use ebbtide_conformance::Input;
use ebbtide_ir::{Program, parse};

use crate::devices;

/// Bodies of `for i in par(0..w.dim(0))` over arrays `w` and `z` of one shape with two columns more than `n`, `x` as long as a row,
/// and `y` as long as a column.
const BODIES: &[(&str, &str)] = &[
    ("product", "let mut s = y[i]; for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = s;"),
    (
        "from_behind",
        "let mut s = y[i]; for k in 0..n { let q = n - 1 - k; s = s + w[[i, q]] * x[q]; } y[i] = s;",
    ),
    (
        "neighbours",
        "let mut s = y[i]; for k in 0..n { s = s * 0.5 + (w[[i, k + 2]] - w[[i, k]]); } y[i] = s;",
    ),
    ("stores", "let mut s = y[i]; for k in 0..n { s = s * 0.5 + w[[i, k]]; z[[i, k + 1]] = s * x[k]; }"),
    ("updates", "let s = y[i]; for k in 0..n { z[[i, k]] += s * x[k]; }"),
    ("updates_from_behind", "let s = y[i]; for k in 0..n { z[[i, n - k]] += s * w[[i, k]]; }"),
    ("recurrence", "let s = y[i]; for k in 0..n { z[[i, k + 1]] = z[[i, k]] * 0.5 + w[[i, k]] * s; }"),
    ("two_updates", "for k in 0..n { z[[i, k]] += w[[i, k]]; z[[i, k + 1]] += x[k]; }"),
    ("sum", "let mut s = 0.0; #[sum(s)] for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = y[i] + s;"),
    ("chosen", "let mut s = y[i]; for k in 0..n { if x[k] > 0.0 { s = s + w[[i, k]]; } } y[i] = s;"),
    (
        "nest",
        "for r in 0..3 { let mut s = 0.0; for k in 0..n { s = s + w[[i, k]] * x[k]; } y[i] = y[i] + s; }",
    ),
    ("what_is_left", "let mut s = y[i]; for k in n / 8 * 8..n { s = s + w[[i, k]] * x[k]; } y[i] = s;"),
    ("empty", "let mut s = y[i]; for k in n + 5..n { s = s + w[[i, k]] * x[k]; } y[i] = s;"),
];

fn program(name: &str, body: &str, ty: &str) -> Program {
    let body =
        if ty == "f32" { body.replace("0.5", "0.5f32").replace("0.0", "0.0f32") } else { body.to_string() };
    let text = format!(
        "program {name}(w: &Array2<{ty}>, z: &mut Array2<{ty}>, x: &Array1<{ty}>, y: &mut Array1<{ty}>) {{
            let n = x.len();
            for i in par(0..w.dim(0)) {{ {body} }}
        }}"
    );
    parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
pub fn loops_along_rows_are_the_same_everywhere() {
    for (name, body) in BODIES {
        for ty in ["f32", "f64"] {
            let program = program(name, body, ty);
            for [rows, n] in [[1, 5], [8, 8], [40, 0], [41, 1], [70, 7], [33, 17], [130, 37]] {
                let shapes: [&[usize]; 4] = [&[rows, n + 2], &[rows, n + 2], &[n], &[rows]];
                let inputs: Vec<Input> =
                    shapes.iter().zip(1..).map(|(shape, seed)| Input::Array(shape.to_vec(), seed)).collect();
                devices::check(&program, &inputs).unwrap_or_else(|e| panic!("{name} {ty} {rows} × {n}: {e}"));
            }
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
