//! Random programs, compiled and interpreted, bit for bit.
//!
//! Fixed seeds; `EBBTIDE_CASES` says how many programs are tried.

pub mod generate;
pub mod gradients;
pub mod regressions;

use ebbtide_conformance::{Input, launch, literals};
use ebbtide_ir::{Literal, Program};
use ebbtide_runtime::{Compiled, interpreter};

use crate::devices::{cpu, on_cuda};
use generate::{ARRAYS, Dice, unit};

/// Programs in one translation unit.
const PER_UNIT: usize = 12;

/// Programs tried unless `EBBTIDE_CASES` says otherwise.
const CASES: usize = 48;

pub fn cases() -> usize {
    std::env::var("EBBTIDE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(CASES)
}

pub fn inputs(n: usize, m: usize, which: usize, seed: u64) -> Vec<Input> {
    let extent = [n, m];
    let arrays = ARRAYS
        .iter()
        .enumerate()
        .map(|(k, (_, _, dims))| Input::Array(dims.iter().map(|d| extent[*d]).collect(), seed + k as u64));
    let mut dice = Dice::new(seed);
    let scalars = [
        Literal::index(which as i64),
        Literal::from(dice.below(100) as f64 / 16.0 - 3.0),
        Literal::from(dice.below(100) as f32 / 16.0 - 3.0),
        Literal::from(dice.next() as i64 >> dice.below(64)),
        Literal::index(dice.below(40) as i64),
    ];
    arrays.chain(scalars.map(Input::Scalar)).collect()
}

/// The elements of all arrays after a run, or the fault; faults are compared as such, since which of several is
/// reported is not defined.
pub fn outcome(compiled: &Compiled, inputs: &[Input]) -> Result<Vec<Vec<Literal>>, String> {
    let bytes = launch(compiled, inputs).map_err(|e| e.to_string())?;
    Ok(ARRAYS.iter().zip(&bytes).map(|((_, ty, _), bytes)| literals(*ty, bytes)).collect())
}

/// The text of one of a unit's programs.
fn text_of(program: &Program, which: usize) -> String {
    let mut one = program.clone();
    let mut seen = 0;
    one.body.retain(|stmt| match stmt {
        ebbtide_ir::Stmt::If(_) => {
            seen += 1;
            seen == which + 1
        }
        _ => true,
    });
    one.to_string()
}

/// Compares all programs of a unit and says how many of its loops run in vectors.
fn compare(seed: u64, count: usize) -> usize {
    let program = unit(seed, count);
    let compile = |device| Compiled::new(&program, &device).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let oracle = compile(interpreter());
    let devices = [1, 2, 5].map(|threads| (threads, compile(cpu(threads))));
    let source = devices[0].1.source().unwrap_or_default();
    let vectors = source.matches("; j < whole; j += ").count();
    let mut done = 0;
    for which in 0..count {
        for (n, m) in [(1, 1), (0, 3), (9, 4), (37, 21), (1700, 3)] {
            let inputs = inputs(n, m, which, seed + which as u64);
            let expected = outcome(&oracle, &inputs);
            done += usize::from(expected.is_ok());
            for (threads, compiled) in &devices {
                let found = outcome(compiled, &inputs);
                let differing = match (&expected, &found) {
                    (Ok(e), Ok(f)) => (0..e.len()).find_map(|k| {
                        let at = e[k].iter().zip(&f[k]).position(|(e, f)| e != f)?;
                        Some(format!("`{}`, element {at}: {} is not {}", ARRAYS[k].0, f[k][at], e[k][at]))
                    }),
                    (Err(_), Err(_)) => None,
                    (Ok(_), Err(f)) => Some(f.clone()),
                    (Err(e), Ok(_)) => Some(format!("no error, but {e}")),
                };
                if let Some(differing) = differing {
                    panic!(
                        "seed {seed}, program {which}, n = {n}, m = {m}, {threads} threads: {differing}\n{}",
                        text_of(&program, which)
                    );
                }
            }
        }
    }
    assert!(2 * done > 3 * count, "seed {seed}: most runs fault: {done} of {} do not", 5 * count);
    vectors
}

/// Share `part` of `parts` of all cases, so that the test runner can run shares side by side.
fn share(part: usize, parts: usize) {
    let units = cases().div_ceil(PER_UNIT);
    let mut vectors = 0;
    for u in (part..units).step_by(parts) {
        vectors += compare(1000 * u as u64, PER_UNIT.min(cases() - u * PER_UNIT));
    }
    // What is compared is what people run.
    assert!(vectors > 0 || units <= part || on_cuda(), "no loop runs in vectors");
}

#[test]
pub fn c48_random_programs_are_the_same_everywhere_one() {
    share(0, 2);
}

#[test]
pub fn c48_random_programs_are_the_same_everywhere_two() {
    share(1, 2);
}
