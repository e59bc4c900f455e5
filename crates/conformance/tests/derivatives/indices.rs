//! Indices of every kind in parallel loops: what an iteration does with its own elements, and what loops without iterations never
//! compute.

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::check_gradient;
use ebbtide_ir::{Literal, parse, verify_source};

/// Holds all derivatives of a program of this body against the oracle's, for these scalars `n` and `m`.
fn check(body: &str, scalars: &[(usize, usize)]) {
    let header =
        "program p(x: &mut Array1<f64>, y: &Array1<f64>, n: usize, m: usize, loss: &mut Array0<f64>)";
    let end = "for i in par(0..x.len()) { loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)); }";
    let program = verify_source(&parse(&format!("{header} {{ {body} {end} }}")).unwrap()).unwrap();
    for (n, m) in scalars {
        let scalar = |k: &usize| Input::Scalar(Literal::from(*k));
        let inputs = [
            Input::Array(vec![12], 3),
            Input::Array(vec![12], 5),
            scalar(n),
            scalar(m),
            Input::Array(vec![], 7),
        ];
        check_gradient(&program, &inputs, "loss", &["x", "y"]);
    }
}

#[test]
fn one_iteration_reads_what_it_wrote_at_elements_that_do_not_depend_on_it() {
    check("for i in par(0..1) { for c in 0..m { x[c] = x[0] * y[i] + 0.25; } }", &[(1, 4), (1, 0)]);
    let nest = "for c in 0..m { for d in 0..3 { x[c] = x[0] * y[(i % 3).min(j)] + 0.25; } }";
    check(&format!("for (i, j) in par(0..n / 2, 1..n) {{ {nest} }}"), &[(2, 5), (1, 3)]);
    // Only a condition shows that there is one; without writes there may be more.
    let nest = "for c in 0..m { for d in 0..3 { x[c] = x[2] * y[j] + 0.25; } }";
    check(&format!("for (i, j) in par(0..n / 2, 1..n) {{ {nest} }}"), &[(2, 5), (2, 2), (1, 3), (6, 0)]);
}

#[test]
fn iterations_multiply_elements_that_conditions_show_to_be_their_own() {
    let scaled = "for c in i..i + m { x[2 * i + 1] = x[2 * i + 1] * y[c]; }";
    check(
        &format!("for i in par(m..n) {{ {scaled} x[i * (m + 1)] = x[i * (m + 1)] * (0.1 + i as f64); }}"),
        &[(2, 1), (2, 2)],
    );
    check("for i in par(0..n) { for c in 0..3 { x[i * m] = x[i * m] * (y[c] + 0.25); } }", &[(4, 2), (1, 0)]);
}

#[test]
fn loops_without_iterations_divide_by_nothing() {
    for index in ["(n - 1) % m", "i + n % m", "n / m"] {
        check(&format!("for i in par(0..m) {{ loss[[]] += y[i] * y[{index}]; }}"), &[(3, 0), (3, 2)]);
    }
}
