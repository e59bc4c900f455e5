//! Results that reversals read where loops left them: the bits of computing them again, whatever overwrites them.

use ebbtide_autodiff::Optimisation;
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_ir::{Literal, parse, verify_source};
use ebbtide_runtime::Budget;

use crate::check_beside_itself_without;

#[test]
fn results_are_read_where_loops_left_them_with_the_bits_of_computing_them_again() {
    let rows = |f: &str, a: &str, b: &str| {
        format!("for i in par(0..n) {{ {a}[i] = ({b}[i] * w[i] + 0.3 * {b}[(i + 1) % n]).{f}(); }}")
    };
    let adds = "for i in par(0..n) { y[i] = y[i] * 0.5 + 0.1 * x[i] * x[i] * w[i]; }";
    let bodies = [
        // Swapped, as recurrent networks do.
        format!("{} swap(x, y);", rows("tanh", "y", "x")),
        // Kept, and read by another loop.
        format!("{} {adds}", rows("exp", "x", "y").replace("(y[i]", "(0.1 * y[i]")),
        // Overwritten in the same iteration: by a loop, by a fill, by a copy, by one element, in part.
        format!("{} {} {adds}", rows("tanh", "x", "y"), rows("sin", "x", "y")),
        format!("{} {adds} fill(x, 0.25); {adds}", rows("tanh", "x", "y")),
        format!("{} {adds} copy(w, x); {adds}", rows("tanh", "x", "y")),
        format!("{} x[1] = 0.5; {adds}", rows("tanh", "x", "y")),
        format!("{} for i in par(1..n - 1) {{ x[i] = 0.5 * w[i]; }} {adds}", rows("tanh", "x", "y")),
        // Written in part.
        format!("{} {adds}", rows("tanh", "x", "y").replace("par(0..n)", "par(1..n - 1)")),
        // In an inner loop and under a condition.
        format!("for s in 0..3 {{ {} if t % 2 == 1 {{ swap(x, y); }} }} {adds}", rows("tanh", "x", "y")),
        format!("if t % 2 == 1 {{ {} }} else {{ {adds} }} {adds}", rows("tanh", "x", "y")),
    ];
    let hints = ["", "#[reverse(mixed = 3)]"];
    for (body, hint) in bodies.iter().flat_map(|body| hints.map(|hint| (body, hint))) {
        let header = "program p(x: &mut Array1<f64>, y: &mut Array1<f64>, w: &Array1<f64>, n: usize, steps: usize, loss: &mut Array0<f64>)";
        let end = "for i in par(0..n) { loss[[]] += x[i] * x[i] + y[i] * w[i]; }";
        let program = parse(&format!("{header} {{ {hint} for t in 0..steps {{ {body} }} {end} }}")).unwrap();
        let program = verify_source(&program).unwrap();
        let arrays = [3, 5, 7].map(|seed| Input::Array(vec![5], seed));
        let scalars = [5, 6usize].map(|k| Input::Scalar(Literal::from(k)));
        let inputs: Vec<Input> = arrays.into_iter().chain(scalars).chain([Input::Array(vec![], 9)]).collect();
        let question = Question::new(&program, &inputs, "loss", &["x", "y", "w"]);
        let revolve = Budget::Revolve { slots: 3, block: 1 };
        let budgets = [Budget::StoreAll, Budget::Periodic { period: 4 }, revolve];
        check_beside_itself_without(&question, Optimisation::ReadResults, &budgets);
    }
}
