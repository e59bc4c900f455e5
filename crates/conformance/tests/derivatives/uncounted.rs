//! Loops at program level that end when their data say so, and that write elements which data names: in other loops, in branches,
//! in one another, and by themselves.

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::{Question, check_gradient};
use ebbtide_ir::{Literal, parse, verify_source};

/// Holds all derivatives of a program of this body against the oracle's. `link` names another element for each one.
fn check(body: &str) {
    let header =
        "program p(x: &mut Array1<f64>, w: &Array1<f64>, link: &mut Array1<i32>, loss: &mut Array0<f64>)";
    let end = "for i in par(0..x.len()) { loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)); }";
    let program = verify_source(&parse(&format!("{header} {{ {body} {end} }}")).unwrap()).unwrap();
    let link = (0..9).map(|k: i32| Literal::from((k - 3).max(0))).collect();
    let inputs = [
        Input::Array(vec![9], 3),
        Input::Array(vec![9], 5),
        Input::Elements(vec![9], link),
        Input::Array(vec![], 7),
    ];
    check_gradient(&program, &inputs, "loss", &["x", "w"]);
}

/// Follows links to their end.
const WALK: &str = "let mut u = e;
    while link[u] as usize != u {
        x[u] = x[u] * w[e] + 0.1 * x[link[u] as usize];
        u = link[u] as usize;
    }
    x[u] = x[u] * w[e];";

#[test]
fn loops_that_data_ends_are_part_of_the_tape_of_the_loop_around_them() {
    check(&format!("for e in 0..9 {{ {WALK} }}"));
    check(&format!("for e in 0..9 {{ if x[e] > 0.0 {{ {WALK} }} }}"));
    // Links are changed on the way: what was found is gone.
    check(&format!(
        "for e in 0..9 {{ {WALK} link[8] = link[link[8] as usize]; link[e] = link[link[e] as usize]; }}"
    ));
}

#[test]
fn loops_that_data_ends_are_reversed_in_one_another_and_by_themselves() {
    check(&format!("let mut e = 8; loop {{ {WALK} e = e - 2; if e < 2 {{ break; }} }}"));
    check("let mut e = 8; while (x[0] * x[0] < 4.0) & (e > 0) { x[0] = x[0] * 1.5 + w[e]; e = e - 1; }");
    check("for e in 0..link[7] as usize { x[e] = x[e] * x[e + 1]; } link[7] = link[0];");
    // A loop that is left, with a loop that counts inside, as often as data say.
    check(
        "for e in 0..9 { for k in 1..9 { let m = link[k] as usize; for j in 0..m { x[j] = x[j] * w[k] + 0.1 * x[e]; }
             x[e] = x[e] * 1.5 + 0.1; if x[e] * x[e] > 0.3 { break; } } link[e] = link[(e + 4) % 9]; }",
    );
}

#[test]
fn loops_of_whole_arrays_and_loops_of_elements_stand_side_by_side() {
    let damped = "while x[e] * x[e] > 0.05 { for i in par(0..9) { x[i] = 0.8 * x[i].sin() * (1.0 - 0.1 * w[i] * w[i]); } }";
    let counted = "for k in 0..3 { for i in par(0..9) { x[i] = (x[i] * x[i]).sin() + w[k]; } }";
    check(&format!("for e in 0..9 {{ {WALK} {damped} {counted} }}"));
    check(&format!("for e in 0..4 {{ for k in 0..2 {{ {damped} x[k] = x[k] + w[e]; }} {WALK} }}"));
}

/// Holds a program of this body, whose regions yield where they end with `flag` set, against the oracle's derivatives.
fn check_yielding(body: &str) {
    let header = "program p(x: &mut Array1<f64>, w: &Array1<f64>, count: &mut Array1<i32>, flag: &mut Array0<i32>, loss: &mut Array0<f64>)";
    let end = "for i in par(0..x.len()) { loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)); }";
    let program = verify_source(&parse(&format!("{header} {{ {body} {end} }}")).unwrap()).unwrap();
    let count = [3, 2, 0, 5, 1, 4].map(Literal::from).to_vec();
    let inputs = [
        Input::Array(vec![9], 3),
        Input::Array(vec![9], 5),
        Input::Elements(vec![6], count),
        Input::Elements(vec![], vec![Literal::from(0)]),
        Input::Array(vec![], 7),
    ];
    let question = Question::new(&program, &inputs, "loss", &["x", "w"]).with_host(|_, lent| {
        lent.get_mut("flag").into_iter().for_each(|flag| flag.fill(Literal::from(0)));
        lent.get_mut("count").into_iter().for_each(|count| count[5] = Literal::from(2));
    });
    if let Err(wrong) = question.check() {
        panic!("{wrong}\n{program}");
    }
}

#[test]
fn what_stands_behind_a_loop_of_a_region_is_put_back_before_the_loop_runs_again() {
    let halving = "let mut m = 4; while m > 0 { let n = count[2] as usize; for i in par(n..9) { x[i] = 0.5 * x[i] * w[i]; } m = m / 3; }";
    let region = |body: &str| format!("#[checkpoint(S::R, yield_on = flag, undo)] {{ {body} }}");
    check_yielding(&region(&format!(
        "{halving} count[2] = 4 as i32; if count[5] == 4i32 {{ flag[[]] = 1 as i32; }}"
    )));
    // In a loop, by a loop, by a fill.
    let by_loop = region(&format!("{halving} for j in 0..3 {{ count[j] = count[j + 3]; }}"));
    check_yielding(&format!("for t in 0..3 {{ {by_loop} x[t] = 0.5 * x[t] * x[t]; }}"));
    let counted = "for k in 0..5 { for i in par(0..9) { x[i] = 0.5 * x[i] * x[i] + y[i]; } }";
    let behind = region(&format!("{counted} fill(y, 0.5);"));
    check_yielding(&format!(
        "let mut y = Array1::<f64>::zeros([9]); for t in 0..2 {{ {behind} y[t] = x[3]; }}"
    ));
}
