//! The language of physics: control flow and small values, on the interpreter and the CPU, with derivatives that the oracle
//! judges.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod combines;
mod elements;
mod jumps;
mod library;
mod parts;
mod printing;
mod ranks;
mod reductions;
mod refused;
mod small;

use ebbtide::{Budget, Device, Devices, Program, ir};
use ebbtide_conformance::{Input, judge, literals, run};

/// Runs a program on the interpreter and the CPU, whose bits must agree, and gives the elements of its parameter `of`.
fn values<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input], of: &str) -> Vec<f64> {
    let program = program.ir().unwrap();
    let expected = run(program, &Device::interpreter(), inputs).unwrap();
    assert_eq!(expected, run(program, &Device::cpu(), inputs).unwrap(), "the CPU has other bits\n{program}");
    let arrays = program.params.iter().filter_map(|param| match param {
        ir::Param::Array(a) => Some(program.array(*a)),
        ir::Param::Scalar(_) => None,
    });
    let (array, bytes) = arrays.zip(&expected).find(|(array, _)| array.name == of).unwrap();
    literals(array.ty, bytes).into_iter().map(|literal| literal.to_f64()).collect()
}

/// Holds gradient, `vjp`, `jvp` and `hvp` of a program against the oracle's, and the bits of the CPU against the
/// interpreter's.
fn differentiates<P: ebbtide::__lang::Source>(
    program: &Program<P>,
    inputs: &[Input],
    of: &str,
    wrt: &[&str],
) {
    let program = program.ir().unwrap();
    judge::check_gradient(program, inputs, of, wrt);
    let question = judge::Question::new(program, inputs, of, wrt);
    let [expected, found] = [Device::interpreter(), Device::cpu()].map(|device| {
        let gradient = question.gradient(&device, true).unwrap();
        gradient.launch(&question, Budget::Periodic { period: 2 }).unwrap().derivatives
    });
    assert_eq!(expected, found, "the CPU's derivatives have other bits\n{program}");
}

/// An array of rank 1 with these elements.
fn array(elements: &[f64]) -> Input {
    shaped(&[elements.len()], elements)
}

/// An array of this shape with these elements.
fn shaped(shape: &[usize], elements: &[f64]) -> Input {
    Input::Elements(shape.to_vec(), elements.iter().map(|x| ir::Literal::from(*x)).collect())
}

/// A zero of rank 0.
fn zero() -> Input {
    shaped(&[], &[0.0])
}

fn count(n: usize) -> Input {
    Input::Scalar(ir::Literal::from(n))
}
