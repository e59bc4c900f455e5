//! Outer products that flow back to matrices: those of several iterations are added at once, with the bits of one by one.

use ebbtide_autodiff::Optimisation;
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_ir::{Literal, Program, parse, verify_source};
use ebbtide_runtime::Budget;

use crate::check_beside_itself_without;

/// Steps of this body over units `h`, with matrices `w` and `v`.
fn program(body: &str) -> Program {
    let header = "program p(h: &mut Array1<f64>, next: &mut Array1<f64>, w: &Array2<f64>, v: &Array2<f64>, n: usize, m: usize, steps: usize, loss: &mut Array0<f64>)";
    let end = "for i in par(0..h.len()) { loss[[]] += h[i] * h[i] * (1.0 + 0.1 * (i as f64)); }";
    verify_source(&parse(&format!("{header} {{ for t in 0..steps {{ {body} }} {end} }}")).unwrap()).unwrap()
}

fn inputs([n, m, steps]: [usize; 3]) -> Vec<Input> {
    let scalar = |k: usize| Input::Scalar(Literal::from(k));
    let arrays = [vec![5], vec![5], vec![5, 5], vec![5, 5]].into_iter().zip(3..);
    let arrays = arrays.map(|(shape, seed)| Input::Array(shape, seed));
    arrays.chain([n, m, steps].map(scalar)).chain([Input::Array(vec![], 9)]).collect()
}

#[test]
fn products_of_several_iterations_are_added_with_the_bits_of_one_by_one() {
    let step = |terms: &str| {
        format!(
            "for i in par(0..n) {{ let mut s = 0.1; for k in 0..m {{ {terms} }} next[i] = s.sin(); }} swap(h, next);"
        )
    };
    let bodies = [
        step("s = s + w[[k, i]] * h[k];"),
        step("s = s + h[k] * w[[i, k]];"),
        step("s = s + w[[k, i]] * h[k] + v[[i, k]] * (h[k] * h[m - k - 1]);"),
        // The matrix is shifted against the units, and some of it is not touched.
        step("s = s + w[[k, i]] * h[k];").replace("0..m", "1..m").replace("w[[k", "w[[k - 1"),
        // Twice in one iteration of the loop around them: these do not wait.
        format!("{} {}", step("s = s + w[[k, i]] * h[k];"), step("s = s + w[[k, i]] * h[k];")),
    ];
    // More steps than wait at once, as many, fewer; loops without iterations, whose inner ones would leave the arrays.
    let sizes = [[5, 5, 19], [5, 4, 8], [4, 5, 3], [0, 9, 2], [5, 0, 9]];
    for body in bodies {
        let program = program(&body);
        for inputs in sizes.map(inputs) {
            let question = Question::new(&program, &inputs, "loss", &["h", "w", "v"]);
            let budgets = [Budget::StoreAll, Budget::Periodic { period: 3 }];
            check_beside_itself_without(&question, Optimisation::DeferOuterProducts, &budgets);
        }
    }
}
