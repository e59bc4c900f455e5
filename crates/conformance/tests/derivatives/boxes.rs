//! Boxes of shadows that loops kill and that are not filled with zeros: interiors of grids between two buffers.

use ebbtide_autodiff::{Inner, Optimisation, Request, gradient};
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_ir::{Literal, Program, Stmt, parse, verify_source, walk};
use ebbtide_runtime::Budget;

use crate::check_beside_itself_without;

/// Which buffers the loss reads. Where it reads both of two, the steps begin with a cotangent of the second one.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    One,
    Both,
}

/// Steps of this body over lines `x` and `y` and grids `u` and `v`; `from..to` lies inside of a line, or not.
fn program(body: &str, read: Read) -> Program {
    let header = "program p(x: &mut Array1<f64>, y: &mut Array1<f64>, u: &mut Array2<f64>, v: &mut Array2<f64>, at: &Array1<i32>, w: &Array1<f64>, seen: &mut Array1<f64>, from: usize, to: usize, steps: usize, loss: &mut Array0<f64>)";
    let before = "let n = x.len(); let p = u.dim(0); let q = u.dim(1);";
    let both = if read == Read::Both { "for i in par(0..n) { loss[[]] += y[i] * w[i]; }" } else { "" };
    let end = "for i in par(0..n) { loss[[]] += x[i] * x[i] * (1.0 + 0.1 * (i as f64)); }
        for (i, j) in par(0..p, 0..q) { loss[[]] += u[[i, j]] * u[[i, j]] * (1.0 + 0.1 * (j as f64)); }
        for t in par(0..seen.len()) { loss[[]] += seen[t] * seen[t]; }";
    let text = format!("{header} {{ {before} for t in 0..steps {{ {body} }} {both} {end} }}");
    verify_source(&parse(&text).unwrap()).unwrap()
}

fn inputs(n: usize, [p, q]: [usize; 2], range: [usize; 2], steps: usize) -> Vec<Input> {
    let arrays = [(vec![n], 3), (vec![n], 5), (vec![p, q], 7), (vec![p, q], 11)];
    let arrays = arrays.map(|(shape, seed)| Input::Array(shape, seed));
    let at = (0..n).map(|i| Literal::from((i * 5 % n) as i32)).collect();
    let [from, to] = range;
    let scalars = [from, to, steps].map(|k| Input::Scalar(Literal::from(k)));
    let rest = [Input::Elements(vec![n], at), Input::Array(vec![n], 13), Input::Array(vec![steps], 17)];
    arrays.into_iter().chain(rest).chain(scalars).chain([Input::Array(vec![], 9)]).collect()
}

const LINE: &str =
    "for i in par(1..n - 1) { y[i] = x[i] + 0.3 * x[i] * (x[i - 1] - 2.0 * x[i] + x[i + 1]); } swap(x, y);";
const GRID: &str = "for (i, j) in par(1..p - 1, 2..q - 1) {
    v[[i, j]] = u[[i, j]] * u[[i - 1, j]] + 0.2 * u[[i + 1, j]] * u[[i, j - 2]] + 0.1 * u[[i, j + 1]]; } swap(u, v);";

/// Bodies of a time loop.
fn bodies() -> Vec<String> {
    let own = "for i in par(1..n - 1) { y[i] = x[i] * x[i] * w[i]; } swap(x, y);";
    let by_data = "for i in par(1..n - 1) { y[i] = x[at[i] as usize] * x[i]; } swap(x, y);";
    let others = "for i in par(2..n - 1) { y[i] = x[i - 1] * x[i + 1] + 0.5 * x[i]; } swap(x, y);";
    let scalars =
        "for i in par(from..to) { if i > 0 { y[i] = x[i - 1] * w[i]; } else { y[i] = x[i]; } } swap(x, y);";
    vec![
        LINE.to_string(),
        GRID.to_string(),
        own.to_string(),
        format!("{LINE} {GRID}"),
        // A source and receivers, before and behind the exchange.
        format!("x[0] += w[t % n] * x[1]; {LINE} seen[t] = x[n / 2];"),
        format!("{LINE} x[1] = w[t % n]; for i in par(0..2) {{ seen[t] += x[at[i] as usize]; }}"),
        // Who reads the buffer next cannot store first: elements that data name, another box, a copy, an element.
        by_data.to_string(),
        format!("{LINE} {others}"),
        format!("{LINE} copy(y, x); {own}"),
        format!("{LINE} seen[t] = y[1] * y[n - 2]; y[0] = 0.5 * y[0];"),
        // Not in every iteration, and one way or another.
        format!("if t % 2 == 0 {{ {LINE} }}"),
        format!("if t % 2 == 0 {{ {LINE} }} else {{ {others} }} seen[t] = x[1];"),
        format!("for k in 0..t % 3 {{ {LINE} }} {own}"),
        // Without an exchange, and with two.
        LINE.replace(" swap(x, y);", " for i in par(1..n - 1) { x[i] = 0.9 * y[i]; }"),
        format!("{LINE} {LINE}"),
        // Bounds that are arguments; they may lie outside of the array where the loop does not run.
        scalars.to_string(),
        format!("if to <= n {{ {scalars} }} else {{ {own} }}"),
    ]
}

#[test]
fn boxes_that_are_not_filled_leave_the_bits_of_filling_them() {
    for (body, read) in bodies().iter().flat_map(|body| [(body, Read::One), (body, Read::Both)]) {
        let program = program(body, read);
        let outside = body.contains("to <= n");
        let sizes = [
            inputs(9, [5, 7], [2, 7], 5),
            inputs(6, [4, 5], [0, 6], 4),
            // No element inside.
            inputs(2, [2, 3], [1, 1], 3),
            inputs(5, [3, 4], if outside { [3, 11] } else { [1, 4] }, 3),
        ];
        for inputs in sizes.iter().take(if read == Read::One { 4 } else { 1 }) {
            let question = Question::new(&program, inputs, "loss", &["x", "y", "u", "v", "w"]);
            let budgets = [Budget::StoreAll, Budget::Periodic { period: 2 }];
            check_beside_itself_without(&question, Optimisation::LazyBoxes, &budgets);
        }
    }
}

#[test]
fn interiors_between_two_buffers_are_never_filled() {
    let wrt = ["x", "u"].map(str::to_string).to_vec();
    let request = Request { of: "loss".to_string(), wrt, ..Request::default() };
    for body in bodies().iter().take(5) {
        let program = gradient(&program(body, Read::One), &request, Inner::Recorded).unwrap().program;
        walk(&program.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                walk(&par.body, &mut |inner| {
                    if let Stmt::Store(s) = inner {
                        assert!(program.literal(s.value).is_none(), "a loop stores zeros\n{program}");
                    }
                });
            }
        });
    }
}
