//! Random indices in parallel loops, held against the race detector, which looks at what iterations touch and knows nothing of proofs.
//!
//! `EBBTIDE_SEED` and `EBBTIDE_CASES` as for random programs.

use ebbtide_conformance::Input;
use ebbtide_conformance::judge::Question;
use ebbtide_conformance::random::indices;
use ebbtide_ir::{Literal, Modes, Program, parse, verify_source};
use ebbtide_runtime::interpreter_with;

/// Cases that run in every test run.
const CASES: u64 = 120;

/// Sizes `n`, `m` and `h`.
const SIZES: [(usize, usize, usize); 9] =
    [(4, 3, 2), (5, 2, 1), (6, 4, 3), (1, 1, 0), (3, 1, 1), (2, 5, 2), (0, 0, 0), (0, 2, 1), (3, 0, 2)];

fn inputs((n, m, h): (usize, usize, usize)) -> Vec<Input> {
    let scalar = |k: usize| Input::Scalar(Literal::from(k));
    let (line, square) = (|seed| Input::Array(vec![30], seed), |seed| Input::Array(vec![6, 6], seed));
    let arrays = [line(1), line(2), square(3), line(4), square(5)];
    arrays.into_iter().chain([n, m, h].map(scalar)).chain([Input::Array(vec![], 6)]).collect()
}

/// What a program left, or why it did not end.
fn run(program: &Program, inputs: &[Input], modes: &str) -> Result<Vec<(String, Vec<Literal>)>, String> {
    let modes: Modes = modes.parse().unwrap();
    Question::new(program, inputs, "loss", &["x"]).run(&interpreter_with(modes)).map_err(|e| e.to_string())
}

/// Do two iterations touch an element that one of them writes?
fn has_race(program: &Program, inputs: &[Input]) -> bool {
    matches!(run(program, inputs, "races"), Err(why) if why.contains("race"))
}

#[derive(Default)]
struct Counts {
    accepted: u64,
    refused: u64,
    /// Refused by the build, though no sizes have a conflict.
    refused_without_race: Vec<String>,
}

fn check(seed: u64, counts: &mut Counts) {
    let text = indices::program(seed);
    let parsed = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let program = match verify_source(&parsed) {
        Ok(program) => program,
        Err(why) => {
            let ends = |sizes| run(&parsed, &inputs(sizes), "").is_ok();
            let races = SIZES.iter().any(|sizes| has_race(&parsed, &inputs(*sizes)));
            match races || !SIZES.into_iter().any(ends) {
                true => counts.refused += 1,
                false => counts.refused_without_race.push(format!("seed {seed}: {why}\n{text}")),
            }
            return;
        }
    };
    counts.accepted += 1;
    for sizes in SIZES {
        let inputs = inputs(sizes);
        match run(&program, &inputs, "") {
            Ok(expected) => {
                for modes in ["races", "descending", "shuffled=5"] {
                    let found = run(&program, &inputs, modes);
                    assert_eq!(found, Ok(expected.clone()), "seed {seed}, {sizes:?}, {modes}\n{text}");
                }
            }
            // What a condition at the beginning of a loop says.
            Err(why) if why.contains("touch") => {
                assert!(has_race(&parsed, &inputs), "seed {seed}, {sizes:?}: {why}\n{text}");
            }
            Err(_) => {}
        }
    }
}

#[test]
fn parallel_loops_are_refused_if_and_only_if_they_have_a_race() {
    let (first, cases) = (crate::variable("EBBTIDE_SEED"), crate::variable("EBBTIDE_CASES"));
    let (first, cases) = (first.unwrap_or(0), cases.unwrap_or(CASES));
    let mut counts = Counts::default();
    (first..first + cases).for_each(|seed| check(seed, &mut counts));
    let (lawful, refused) = (counts.accepted, counts.refused_without_race.len() as u64);
    println!("{lawful} accepted, {} refused with a race, {refused} without", counts.refused);
    // A generator whose programs are all alike shows nothing.
    let is_mixed = lawful > cases / 2 && counts.refused > cases / 10;
    assert!(is_mixed || cases < CASES, "{lawful} accepted, {} refused", counts.refused);
    let texts = counts.refused_without_race.join("\n");
    assert!(100 * refused < lawful + refused, "{refused} of {lawful} lawful programs are refused\n{texts}");
}
