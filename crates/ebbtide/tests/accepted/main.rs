//! CONFORMANCE 57: loops that are safe are accepted, in the form in which people write them, and have gradients, `jvp`s and
//! `hvp`s like any other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_cpu::Optimize;
use ebbtide_ir::{Checks, Dead, IterationOrder, Literal, Modes, Program, Races};
use ebbtide_runtime::{Budget, Device, interpreter, interpreter_with};

mod bodies;
mod conditions;
mod factors;
mod grids;
mod nests;
mod refusals;
mod trajectories;
mod vectors;
mod without_bound;

/// The CPU with so many threads. Its code is compiled quickly: these programs are small.
fn cpu(threads: usize) -> Device {
    ebbtide_cpu::Options::new().threads(threads).optimize(Optimize::Never).build().unwrap().0
}

/// Holds a program and its derivatives against the oracle: in the interpreter, in the interpreter with every judge on, and
/// on CPUs with one, two and five threads.
fn check(program: &Program, inputs: &[Input], of: &str, wrt: &[&str]) {
    let question = Question::new(program, inputs, of, wrt);
    if let Err(wrong) = question.check() {
        panic!("{wrong}\n{program}");
    }
    let trace = question.trace().unwrap();
    let values = question.run(&interpreter()).unwrap();
    let modes = Modes {
        checks: Checks::Usual,
        order: IterationOrder::Shuffled(3),
        races: Races::Reported,
        dead: Dead::Poisoned,
    };
    let judged = interpreter_with(modes);
    let scalar = question.input(of).is_some_and(|input| input.shape().is_empty());
    for (name, device) in
        [("judges", judged), ("one thread", cpu(1)), ("two threads", cpu(2)), ("five threads", cpu(5))]
    {
        let wrong =
            |what: &str, error: &dyn std::fmt::Display| -> ! { panic!("{name}: {what}: {error}\n{program}") };
        let found = question.run(&device).unwrap_or_else(|error| wrong("the program", &error));
        assert_eq!(found, values, "{name}\n{program}");
        let gradient =
            question.gradient(&device, !scalar).unwrap_or_else(|error| wrong("the gradient", &error));
        for budget in [Budget::StoreAll, Budget::Revolve { slots: 2, block: 2 }] {
            let answer =
                gradient.launch(&question, budget).unwrap_or_else(|error| wrong("the gradient", &error));
            if let Err(error) = question.judge_gradient(&trace, !scalar, &answer.derivatives) {
                wrong("the gradient", &error);
            }
        }
        let jvp = question.jvp(&device).unwrap_or_else(|error| wrong("the jvp", &error));
        if let Err(error) = question.judge_jvp(&trace, &jvp) {
            wrong("the jvp", &error);
        }
        if scalar {
            let hvp =
                question.hvp(&device, Budget::StoreAll).unwrap_or_else(|error| wrong("the hvp", &error));
            if let Err(error) = question.judge_hvp(&trace, &hvp) {
                wrong("the hvp", &error);
            }
        }
    }
}

fn array(shape: &[usize], seed: u64) -> Input {
    Input::Array(shape.to_vec(), seed)
}

fn loss() -> Input {
    Input::Elements(vec![], vec![Literal::from(0.0)])
}

fn indices(all: &[i32]) -> Input {
    Input::Elements(vec![all.len()], all.iter().map(|k| Literal::from(*k)).collect())
}

fn size(n: i64) -> Input {
    Input::Scalar(Literal::index(n))
}
