//! The derivatives of every program are those of the oracle.

use ebbtide::ir::{Literal, Param, Type};
use ebbtide_conformance::Input;
use ebbtide_conformance::judge::{Question, Wrong, reference};
use ebbtide_runtime::Budget;

use super::{NAMES, Problem, Size, problem};

#[test]
fn derivatives_of_every_program_are_those_of_the_oracle() {
    for name in NAMES.iter().copied() {
        for ty in [Type::F64, Type::F32] {
            let problem =
                problem(name, ty, Size::Tiny).unwrap_or_else(|error| panic!("{name} {ty}: {error}"));
            let question = Question::new(&problem.program, &problem.inputs, "loss", problem.wrt);
            match question.check() {
                // The oracle does not judge derivatives that a program brings: those of `fft`.
                Err(Wrong::NotJudged(_)) if name == "split_step" => by_differences(&problem, ty),
                found => found.unwrap_or_else(|wrong| panic!("{name} {ty}: {wrong}")),
            }
        }
    }
}

/// The gradient along the direction of the question is what the loss changes by along it.
fn by_differences(problem: &Problem, ty: Type) {
    let question = Question::new(&problem.program, &problem.inputs, "loss", problem.wrt);
    let direction = question.direction();
    let gradient = question.gradient(&reference(), false).unwrap();
    let found = gradient.launch(&question, Budget::StoreAll).unwrap().derivatives;
    let along: f64 = problem
        .wrt
        .iter()
        .zip(&found)
        .map(|(name, slopes)| {
            slopes.iter().zip(&direction[*name]).map(|(slope, d)| slope.to_f64() * d).sum::<f64>()
        })
        .sum();
    let step = if ty == Type::F64 { 1e-5 } else { 1e-2 };
    let loss = |moved: f64| {
        let to = |(x, d): (&Literal, &f64)| Literal::of(ty, x.to_f64() + moved * d);
        let mut inputs = problem.inputs.clone();
        for (param, input) in problem.program.params.iter().zip(&mut inputs) {
            if let (Param::Array(a), Input::Elements(_, elements)) = (param, input)
                && let Some(d) = direction.get(&problem.program.array(*a).name)
            {
                *elements = elements.iter().zip(d).map(to).collect();
            }
        }
        let ran = Question { inputs: &inputs, ..question.clone() }.run(&reference()).unwrap();
        ran.iter().find(|(name, _)| name == "loss").unwrap().1[0].to_f64()
    };
    let difference = (loss(step) - loss(-step)) / (2.0 * step);
    let near = if ty == Type::F64 { 1e-8 } else { 1e-3 };
    assert!((along - difference).abs() < near * difference.abs(), "{ty}: {along}, not {difference}");
}
