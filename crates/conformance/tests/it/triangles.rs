//! Loops inside iterations whose bounds depend on the iteration: the same bits and the same faults as on the interpreter, however
//! many iterations there are, for every size of vectors.

use std::process::Command;

use ebbtide_conformance::Input;
use ebbtide_ir::{Literal, Program, parse};

use crate::devices;

/// Bodies of `for i in par(0..n)` over a square matrix `a`, `x` and `y` as long as its rows, and `w` of eight elements; those that
/// write rows or columns have a matrix `z` of their own.
const BODIES: &[&str] = &[
    "let mut s = y[i]; for j in i..n { s = s + a[[i, j]] * x[j]; } y[i] = s;",
    "let mut s = y[i]; for j in 0..i { s = s * 0.5 + a[[j, i]] * x[j]; } y[i] = s;",
    "let mut s = y[i]; for j in i + 1..n { let d = x[i] - x[j]; s = s + d * d; } y[i] = s;",
    "let mut s = y[i]; for j in 0..n - i { s = s + a[[j, i]] * x[n - 1 - j]; } y[i] = s;",
    "let mut s = y[i]; for j in i..n - i { s = s + a[[i, j]]; } y[i] = s;",
    "let mut s = y[i]; for j in 2 * i..n { s = s + a[[i, j]]; } y[i] = s;",
    "let mut s = y[i]; for j in (n - 3 * i).max(0)..n { s = s + a[[j, i]]; } y[i] = s;",
    "let mut s = y[i]; for j in i..(2 * i).min(n) { s = s + a[[i, j]]; } y[i] = s;",
    "let mut s = y[i]; for j in i.max(3) - 3..(i + 4).min(n) { s = s + a[[0, j]] * w[j - i + 3]; } y[i] = s;",
    "let mut s = y[i]; for j in i..(i + 5).min(n) { s = s + (j as F) * a[[i, j]]; } y[i] = s;",
    "let mut s = y[i]; for j in i..n { s = s + x[j] * x[j - i]; } y[i] = s;",
    "let mut s = y[i]; for j in i..n { if x[j] > 0.0 { s = s + a[[i, j]]; } } y[i] = s;",
    "let mut s = y[i]; for j in i..n { if a[[i, j]] > 0.0 { s = s + x[j]; } } y[i] = s;",
    "let mut s = y[i]; for j in 0..i { for k in 0..2 { s = s * 0.5 + a[[i, j]]; } } y[i] = s;",
    "for r in 0..2 { let mut s = 0.0; for j in i..n { s = s + a[[i, j]] * x[j]; } y[i] = y[i] + s; }",
    "let mut s = y[i]; for j in i + n..n { s = s + x[j] * a[[i, i + 1000000000000]]; } y[i] = s;",
    "let mut s = y[i]; for j in i..n { for k in j..n { s = s * 0.5 + a[[j, k]]; } } y[i] = s;",
    "let mut s = y[i]; for j in i..n { for k in i..j { s = s * 0.5 + a[[j, k]]; } } y[i] = s;",
    "let mut s = 0.0; #[sum(s)] for j in i..n { s = s + a[[i, j]] * x[j]; } y[i] = y[i] + s;",
    "let mut s = 0.0; #[sum(s)] for j in 0..i { s = s + a[[j, i]] * x[j]; } y[i] = y[i] + s;",
    "for j in 0..i + 1 { z[[i, j]] += x[i] * x[j]; }",
    "for j in i..n { z[[j, i]] = x[j] * y[i]; }",
    "for j in i + 1..n { z[[i, j]] = x[j] * y[i]; z[[j, i]] = x[i]; }",
    "for j in i..n { loss[[]] += a[[i, j]] * x[j]; }",
    "let mut s = 0.0; for j in 0..i { s = s + a[[i, j]]; } loss[[]] += s;",
    "let mut s = 0.0; let mut c = 0; for j in i..n { s = s + x[j]; c = c + 1; } y[i] = y[i] + s * (c as F);",
];

/// Loops over two dimensions: rows with ranges of their own.
const PLANES: &[&str] = &[
    "let mut s = z[[r, i]]; for j in i..n { s = s + a[[r, j]] * x[j]; } z[[r, i]] = s;",
    "let mut s = z[[r, i]]; for j in r..i { s = s + a[[r, j]] * x[j]; } z[[r, i]] = s;",
    "let mut s = z[[r, i]]; for j in 0..r { s = s + a[[j, i]] * x[j]; } z[[r, i]] = s;",
];

/// A loop after the other, and how many matrices they write.
fn program(ty: &str) -> (Program, usize) {
    let (mut loops, mut written) = (String::new(), 0);
    let lines = BODIES.iter().map(|body| ("for i in par(0..n)", body));
    let planes = PLANES.iter().map(|body| ("for (r, i) in par(0..n, 0..n)", body));
    for (head, body) in lines.chain(planes) {
        let z = format!("z{written}[");
        written += usize::from(body.contains("z["));
        loops += &format!("{head} {{ {} }}\n", body.replace("z[", &z).replace("as F", &format!("as {ty}")));
    }
    if ty == "f32" {
        loops = loops.replace("0.5", "0.5f32").replace("0.0", "0.0f32");
    }
    let matrices: String = (0..written).map(|k| format!(", z{k}: &mut Array2<{ty}>")).collect();
    let text = format!(
        "program triangles(a: &Array2<{ty}>, x: &Array1<{ty}>, w: &Array1<{ty}>, y: &mut Array1<{ty}>, loss: &mut Array0<{ty}>{matrices}) {{ let n = x.len();\n{loops}}}"
    );
    (parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), written)
}

#[test]
pub fn loops_over_triangles_are_the_same_everywhere() {
    for ty in ["f32", "f64"] {
        let (program, written) = program(ty);
        for n in [0, 1, 2, 7, 16, 33, 70, 150] {
            let shapes = [vec![n, n], vec![n], vec![8], vec![n], vec![]];
            let shapes = shapes.into_iter().chain(vec![vec![n, n]; written]);
            let inputs: Vec<Input> = shapes.zip(1..).map(|(shape, seed)| Input::Array(shape, seed)).collect();
            devices::check(&program, &inputs).unwrap_or_else(|e| panic!("{ty} {n}: {e}"));
        }
    }
}

/// Bodies with faults, where `x` is shorter than the loop, which is `n` long.
const FAULTS: &[&str] = &[
    "for j in i..n { s = s + x[j]; }",
    "for j in 0..i { s = s + x[j]; }",
    "for j in i - 3..n { s = s + x[j.min(5)]; }",
    "for j in i..n { s = s + x[j - i + 2]; }",
    "for j in i..i + 9 { s = s + x[n - 1 - j]; }",
    "for j in 4611686018427387904 * i..n { s = s + x[j.min(5)]; }",
    "for j in 0..i { s = s + x[(j + i) / (j - 6)]; }",
    "for j in i..i + 5 { let q = j - i - 2; s = s + x[q * q - 1]; }",
    "for j in 0..5 { let q = j - 2; s = s + x[q * q - 1]; }",
];

/// One of the loops, by number.
fn faulty() -> Program {
    let each = FAULTS.iter().enumerate().map(|(k, body)| {
        format!("if which == {k} {{ for i in par(0..n) {{ let mut s = y[i]; {body} y[i] = s; }} }}\n")
    });
    let text = format!(
        "program faulty(x: &Array1<f64>, y: &mut Array1<f64>, which: usize) {{ let n = y.len();\n{} }}",
        each.collect::<String>()
    );
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn a_fault_in_a_triangle_is_that_of_the_first_iteration() {
    let program = faulty();
    for (which, body) in FAULTS.iter().enumerate() {
        for [n, m] in [[40, 33], [100, 70], [150, 141]] {
            let which = Input::Scalar(Literal::index(which as i64));
            let inputs = [Input::Array(vec![m], 1), Input::Array(vec![n], 2), which];
            let fault = devices::check(&program, &inputs);
            assert!(fault.is_err(), "{body} on {n} and {m}");
            assert_eq!(devices::results(&program, &devices::cpu(1), &inputs), fault, "{body} on {n} and {m}");
        }
    }
}

#[test]
fn triangles_are_the_same_for_every_size_of_vectors() {
    for bytes in ["16", "32"] {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "triangles::loops_over_triangles_are_the_same_everywhere"])
            .env("EBBTIDE_VECTOR_BYTES", bytes)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{bytes}: {said}");
    }
}
