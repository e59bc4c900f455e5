//! Gradients of deep nests: what is written grows with the nest, and not with two to the power of its depth.
//!
//! Where loops record, that is linear. A loop that is swept has a piece that runs what is inside it without recording, so the
//! outermost four are swept, and deeper ones record. A loop of an iteration that is reversed runs its inner loops forward once
//! more: that is quadratic, with a small factor.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_ir::{Program, Stmt, parse, verify_source, walk};

/// `x = x · x / 2` so many loops deep, in loops of the program or in those of an iteration.
fn nest(depth: usize, inside: bool) -> Program {
    let open: String = (0..depth).map(|k| format!("for k{k} in 0..n {{\n")).collect();
    let close = "}\n".repeat(depth);
    let body = match inside {
        true => format!(
            "for i in par(0..x.len()) {{\nlet mut y = x[i];\n{open}y = y * y * 0.5;\n{close}x[i] = y;\n}}\n"
        ),
        false => format!("{open}for i in par(0..x.len()) {{\nx[i] = x[i] * x[i] * 0.5;\n}}\n{close}"),
    };
    let text = format!(
        "program nest(x: &mut Array1<f64>, loss: &mut Array0<f64>, n: usize) {{\n{body}\
         for i in par(0..x.len()) {{\nloss[[]] += x[i];\n}}\n}}\n"
    );
    verify_source(&parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))).unwrap()
}

/// How many statements the gradient of a nest has, and how many values were made on the way to it, those that were pruned included.
fn written(depth: usize, inside: bool, inner: Inner) -> [usize; 2] {
    let request = Request { of: "loss".to_string(), wrt: vec!["x".to_string()], ..Request::default() };
    let program = gradient(&nest(depth, inside), &request, inner).unwrap().program;
    let mut statements = 0;
    walk(&program.body, &mut |stmt: &Stmt| statements += usize::from(!matches!(stmt, Stmt::Let(_))));
    [statements, program.values.len()]
}

/// What eight more loops cost, of statements and of values, by what four more cost before.
fn growth(inside: bool, inner: Inner) -> [(usize, usize); 2] {
    let [four, eight, sixteen] = [4, 8, 16].map(|depth| written(depth, inside, inner));
    [0, 1].map(|k| (sixteen[k] - eight[k], eight[k] - four[k]))
}

#[test]
fn what_is_written_for_a_nest_of_the_program_is_linear_in_its_depth() {
    for inner in [Inner::Recorded, Inner::Swept] {
        for (more, before) in growth(false, inner) {
            assert_eq!(more, 2 * before, "{inner:?}");
        }
    }
}

#[test]
fn what_is_written_for_a_nest_of_iterations_is_quadratic_at_most() {
    for (more, before) in growth(true, Inner::Recorded) {
        assert!(more <= 4 * before, "{more} and {before}");
    }
}

#[test]
#[ignore = "a tool: prints how long gradients of nests take to make"]
fn seconds_of_gradients_of_nests() {
    for (inside, inner) in [(false, Inner::Recorded), (false, Inner::Swept), (true, Inner::Recorded)] {
        for depth in [2, 4, 8, 16] {
            let program = nest(depth, inside);
            let request =
                Request { of: "loss".to_string(), wrt: vec!["x".to_string()], ..Request::default() };
            let least = (0..5).map(|_| {
                let began = std::time::Instant::now();
                gradient(&program, &request, inner).unwrap();
                began.elapsed()
            });
            let least = least.min().unwrap();
            println!(
                "in iterations: {inside}, {inner:?}, {depth} loops: {least:?}, {:?}",
                written(depth, inside, inner)
            );
        }
    }
}
