//! Durable gradients that a program continues whose values have other numbers than those of the one that began.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_cases::renumbered;
use ebbtide_ir::{Literal, parse, verify_source};
use ebbtide_runtime::{Budget, CompiledGradient, Device, interpreter};

use crate::devices::cpu;
use crate::gradients::{Case, Given, bits, burgers, wave};
use crate::traces::{Random, renumbered_at_random};

#[path = "../../../sweep/tests/it/faulty.rs"]
#[allow(dead_code, reason = "the tests of `sweep` use more of it")]
mod faulty;
use faulty::Faulty;

/// Scalars that are needed before, in and behind loops of a known and of an unknown length.
const LOOPS: &str =
    "program loops(u: &mut Array1<f64>, c: &mut Array1<f64>, loss: &mut Array0<f64>, steps: usize, a: f64) {
    let b = a * a + 1.0;
    let half = u[0] * 0.5;
    let mut s = b * 0.25;
    for t in 0..steps {
        let w = b * c[t];
        for i in par(0..u.len()) {
            u[i] = u[i] * w - half * u[i] * u[i] * s;
        }
        for k in 0..2 {
            for i in par(0..u.len()) {
                u[i] = u[i] + u[i] * u[i] * (0.01 * b);
            }
        }
        s = s * 0.9 + w;
    }
    let mut m = 0;
    while m < 3 {
        for i in par(0..u.len()) {
            u[i] = u[i] * u[i] * b + half;
        }
        m = m + 1;
    }
    for i in par(0..u.len()) {
        loss[[]] += u[i] * s;
    }
}
";

fn loops() -> Case {
    let program = parse(LOOPS).unwrap_or_else(|why| panic!("{why}"));
    let shape = Given::Shape;
    let scalars = [Literal::from(4usize), Literal::from(0.3)].map(Given::Scalar);
    let given = [vec![shape(vec![5]), shape(vec![4]), shape(vec![])], scalars.to_vec()].concat();
    Case { program: verify_source(&program).unwrap(), wrt: vec!["u", "c"], given }
}

/// The same program, its values made among others that nothing uses. Their order is as it was: that of what is recorded hangs on it.
fn with_gaps(case: &Case, random: &mut Random) -> Case {
    let mut next = 0;
    let mut place = || {
        next += 1 + random.below(3);
        next
    };
    let places: Vec<usize> = case.program.values.iter().map(|_| place()).collect();
    let program = renumbered(&case.program, &places);
    assert_eq!(program.hash(), case.program.hash());
    Case { program, wrt: case.wrt.clone(), given: case.given.clone() }
}

/// Stops a run at many moments; another program goes on from each of them.
fn continued(case: &Case, other: &Case, device: &Device, budget: Budget) -> usize {
    let [first, second] = [case, other]
        .map(|case| CompiledGradient::new(&case.program, &case.request(), device, budget).unwrap());
    assert_eq!(first.program().hash(), second.program().hash(), "{}", case.program);
    let dir = Path::new("run");
    let durable = |case: &Case, gradient: &CompiledGradient, fs: &Faulty| {
        let fs = Arc::new(fs.clone());
        let launch = |args: &mut [ebbtide_runtime::Arg<'_>]| {
            gradient.launch_durable_on(fs, dir, Duration::ZERO, args).unwrap()
        };
        bits(&case.with_arguments(gradient, launch).0)
    };
    let fs = Faulty::new();
    fs.record_every(9);
    let expected = durable(case, &first, &fs);
    assert_eq!(expected, bits(&case.run(&first).0));
    let mut moments = fs.take_recording();
    moments.retain(|moment| moment.exists(&dir.join("manifest.json")));
    for moment in &moments {
        assert_eq!(durable(other, &second, moment), expected);
    }
    moments.len()
}

#[test]
fn a_program_whose_values_have_other_numbers_continues_a_durable_gradient() {
    let mut random = Random::new(3);
    let mut moments = 0;
    for case in [loops(), burgers(6, 5), wave(4, 5, 4)] {
        for (device, budget) in [
            (interpreter(), Budget::StoreAll),
            (interpreter(), Budget::Revolve { slots: 2, block: 1 }),
            (cpu(2), Budget::Revolve { slots: 2, block: 2 }),
        ] {
            let other = with_gaps(&case, &mut random);
            moments += continued(&case, &other, &device, budget);
        }
    }
    assert!(moments > 50, "{moments} moments");
}

#[test]
fn a_gradient_has_the_same_bits_whatever_numbers_values_have() {
    let mut random = Random::new(4);
    for case in [loops(), burgers(6, 5), wave(4, 5, 4)] {
        let expected = bits(&case.run(&case.compile(&interpreter())).0);
        for _ in 0..8 {
            let program = renumbered_at_random(&case.program, &mut random);
            let other = Case { program, wrt: case.wrt.clone(), given: case.given.clone() };
            assert_eq!(bits(&other.run(&other.compile(&interpreter())).0), expected);
        }
    }
}
