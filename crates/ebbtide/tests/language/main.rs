//! The language of physics: control flow and small values, on the interpreter and the CPU, with derivatives that the oracle
//! judges.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod aggregates;
mod assertions;
mod choices;
mod combines;
mod costs;
mod elements;
mod jumps;
mod lengths;
mod library;
mod library_parts;
mod operations;
mod parameters;
mod parts;
mod patterns;
mod printing;
mod ranks;
mod reductions;
mod refused;
mod small;
mod vector_sums;

use ebbtide::{Budget, Device, Devices, Program, ir};
use ebbtide_conformance::{Input, judge, literals, run};

/// The CPU. Its code is compiled quickly: these programs are small, and there are many of them.
fn cpu() -> Device {
    ebbtide_cpu::Options::new()
        .optimize(ebbtide_cpu::Optimize::Never)
        .build()
        .expect("tests need a C compiler")
        .0
}

/// Runs a program on the interpreter and the CPU, whose bits must agree, and gives the elements of its parameter `of`.
fn values<P: ebbtide::__lang::Source>(program: &Program<P>, inputs: &[Input], of: &str) -> Vec<f64> {
    let program = program.ir().unwrap();
    let expected = run(program, &Device::interpreter(), inputs).unwrap();
    assert_eq!(expected, run(program, &cpu(), inputs).unwrap(), "the CPU has other bits\n{program}");
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
    let [expected, found] = [Device::interpreter(), cpu()].map(|device| {
        let gradient = question.gradient(&device, true).unwrap();
        gradient.launch(&question, Budget::Periodic { period: 2 }).unwrap().derivatives
    });
    assert_eq!(expected, found, "the CPU's derivatives have other bits\n{program}");
}

/// Holds two lists of numbers against each other, relative to the largest of them.
fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(1e-300, |scale: f64, x| scale.max(x.abs()));
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * scale, "element {k}: {found} instead of {expected}");
    }
}

/// The gradient of a program against finite differences, and its `jvp` and `hvp` against the gradient.
fn differences_agree<P: ebbtide::__lang::Source>(
    program: &Program<P>,
    inputs: &[Input],
    of: &str,
    wrt: &[&str],
) {
    let question = judge::Question::new(program.ir().unwrap(), inputs, of, wrt);
    let flat = |all: Vec<Vec<ir::Literal>>| -> Vec<f64> {
        all.into_iter().flatten().map(|literal| literal.to_f64()).collect()
    };
    let along: Vec<f64> = question.direction().into_values().flatten().collect();
    let moved = |step: f64| -> Vec<Input> {
        let mut inputs = inputs.to_vec();
        let mut at = 0;
        for (k, name) in wrt.iter().enumerate() {
            assert_eq!(question.input(name).map(Input::shape), Some(inputs[k].shape()), "wrt come first");
            let Input::Elements(_, elements) = &mut inputs[k] else { panic!("inputs are elements") };
            for element in elements {
                *element = (element.to_f64() + step * along[at]).into();
                at += 1;
            }
        }
        inputs
    };
    let gradient = |device: &Device, inputs: &[Input]| {
        let question = judge::Question::new(program.ir().unwrap(), inputs, of, wrt);
        let gradient = question.gradient(device, false).unwrap();
        flat(gradient.launch(&question, Budget::Auto).unwrap().derivatives)
    };
    for device in [Device::interpreter(), cpu()] {
        let found = gradient(&device, inputs);
        let slope: f64 = found.iter().zip(&along).map(|(g, v)| g * v).sum();
        let step = 1e-5;
        let expected =
            (values(program, &moved(step), of)[0] - values(program, &moved(-step), of)[0]) / (2.0 * step);
        assert!((slope - expected).abs() < 1e-7 * expected.abs().max(1.0), "{slope} instead of {expected}");
        let jvp = question.jvp(&device).unwrap()[0].to_f64();
        assert!((jvp - slope).abs() < 1e-12 * slope.abs().max(1.0), "{jvp} and {slope}");
        let (ahead, behind) = (gradient(&device, &moved(step)), gradient(&device, &moved(-step)));
        let bend: Vec<f64> = ahead.iter().zip(&behind).map(|(a, b)| (a - b) / (2.0 * step)).collect();
        close(&flat(question.hvp(&device, Budget::Auto).unwrap()), &bend, 1e-7);
    }
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
