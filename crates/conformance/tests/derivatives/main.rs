//! Derivatives of random programs of the whole language, held against the oracle.
//!
//! Seeds are fixed: case `k` has seed `EBBTIDE_SEED + k` (0 unless said otherwise). `EBBTIDE_CASES` says how many there
//! are, `EBBTIDE_SHARD=3/16` that this process takes every sixteenth from the third on. A failure is made smaller
//! and printed in the surface language.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod boxes;
mod frozen;
mod indices;
mod outer_products;
mod races;
mod results;
mod strips;
mod targeted;
mod texts;
mod uncounted;

use std::collections::BTreeMap;
use std::path::Path;

use ebbtide_autodiff::Optimisation;
use ebbtide_conformance::judge::{Question, reference};
use ebbtide_conformance::random::generate::{Dice, PHYSICAL, RECURRENT, generate, is_long};
use ebbtide_conformance::random::shrink::shrink;
use ebbtide_conformance::random::text::text;
use ebbtide_conformance::random::{Case, Sizes, Sketch, Verdict};
use ebbtide_cpu::{Cache, Optimize, Options};
use ebbtide_runtime::{Budget, Device};

/// Cases that run in every test run.
const CASES: u64 = 300;

/// Cases with small values, jumps, reductions and parts of arrays that run in every test run.
const PHYSICAL_CASES: u64 = 150;

/// Cases with elements that data names beside own ones, and recurrences, that run in every test run.
const RECURRENT_CASES: u64 = 150;

/// One case in so many runs on the CPU too.
const ON_CPU: u64 = 12;

/// Holds all derivatives against the oracle's, and the bits of the gradient under these budgets against those that it has without
/// an optimisation.
fn check_beside_itself_without(question: &Question<'_>, optimisation: Optimisation, budgets: &[Budget]) {
    let program = question.program;
    if let Err(wrong) = question.check() {
        panic!("{wrong}\n{program}");
    }
    let plain = question.gradient_without(&reference(), false, &[optimisation]).unwrap();
    let plain = plain.launch(question, Budget::StoreAll).unwrap();
    let gradient = question.gradient(&reference(), false).unwrap();
    for budget in budgets {
        let found = gradient.launch(question, *budget).unwrap();
        assert_eq!(found.derivatives, plain.derivatives, "{budget:?}\n{program}");
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

/// The sizes of a case: small ones, none, and now and then beyond a leaf of a reduction.
fn sizes(seed: u64) -> Sizes {
    let mut dice = Dice::new(seed ^ 0xface);
    let n = match dice.below(24) {
        _ if is_long(seed) => 4200,
        0 => 0,
        1 | 2 => 1,
        3..=5 => 2,
        6..=17 => 5,
        18..=22 => 33,
        _ => 4200,
    };
    let m = if n > 1000 { 1 } else { dice.pick(&[1, 2, 3, 3, 5]) };
    Sizes { n, m, steps: dice.pick(&[0, 1, 2, 3, 4, 5]) }
}

fn case(seed: u64) -> Case {
    Case { sketch: generate(seed), sizes: sizes(seed), seed }
}

/// CPUs with one, two and five threads; what they compile is kept for the next run. Code of all levels has the same bits; one
/// case of three has each.
fn cpus(seed: u64) -> Vec<Device> {
    let optimize = [Optimize::Always, Optimize::WhereItPays, Optimize::Never][(seed / ON_CPU % 3) as usize];
    [1, 2, 5].map(|threads| cpu(threads, optimize)).to_vec()
}

fn cpu(threads: usize, optimize: Optimize) -> Device {
    let kept = std::env::var_os("EBBTIDE_TEST_CODE");
    let folder = kept.map_or(Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"), Into::into);
    Options::new().threads(threads).cache(Cache::at(folder)).optimize(optimize).build().unwrap().0
}

fn devices(seed: u64) -> Vec<Device> {
    if seed.is_multiple_of(variable("EBBTIDE_ON_CPU").unwrap_or(ON_CPU)) { cpus(seed) } else { Vec::new() }
}

/// A smaller case that fails in the same way, as a text to be pasted.
fn report(seed: u64, verdict: &Verdict) -> String {
    let whole = case(seed);
    let kind = verdict.kind();
    // Compiling every candidate takes minutes, and is seldom needed.
    let on_cpu = !whole.check(&Vec::new).is_failure();
    let all = || if on_cpu { devices(seed) } else { Vec::new() };
    let most = if on_cpu { 200 } else { 3000 };
    let fails = |sketch: &Sketch, sizes: Sizes| {
        Case { sketch: sketch.clone(), sizes, seed }.check(&all).kind() == kind
    };
    let (sketch, sizes) = shrink(&whole.sketch, whole.sizes, most, &fails);
    let small = Case { sketch, sizes, seed };
    let arguments =
        small.sketch.arrays.iter().map(|a| &a.name).chain(small.sketch.scalars.iter().map(|s| &s.name));
    let arguments: Vec<String> = arguments
        .zip(small.inputs())
        .map(|(name, input)| format!("// {name} = {:.400}", format!("{input:?}")))
        .collect();
    format!(
        "seed {seed}: {:?}\n{:?}, by {:?}\n{}{}\n",
        small.check(&all),
        sizes,
        small.wrt(),
        text(&small.sketch),
        arguments.join("\n")
    )
}

/// Checks a share of all cases, and prints what became of them.
fn run(part: u64, parts: u64) {
    let (first, cases) = (variable("EBBTIDE_SEED").unwrap_or(0), variable("EBBTIDE_CASES").unwrap_or(CASES));
    run_seeds(first, cases, part, parts);
}

fn run_seeds(first: u64, cases: u64, part: u64, parts: u64) {
    let shard = std::env::var("EBBTIDE_SHARD").ok();
    let shard = shard.as_deref().and_then(|s| s.split_once('/'));
    let shard = shard.and_then(|(k, n)| Some((k.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    let (shard, shards) = shard.unwrap_or((0, 1));
    let mut counts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut failures = Vec::new();
    for seed in first + part..first + cases {
        if (seed - first) % parts != part || (seed - first) / parts % shards != shard % shards {
            continue;
        }
        let verdict = case(seed).check(&|| devices(seed));
        counts.entry(verdict.kind()).or_default().push(seed);
        if verdict.is_failure() {
            println!("seed {seed}: {verdict:?}");
            failures.push((seed, verdict));
        }
    }
    for (kind, seeds) in &counts {
        println!("{:6} {kind} {:?}", seeds.len(), &seeds[..seeds.len().min(4)]);
    }
    let reports: Vec<String> =
        failures.iter().take(8).map(|(seed, verdict)| report(*seed, verdict)).collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), reports.join("\n"));
    let right = counts.get("right: ").map_or(0, Vec::len);
    let all: usize = counts.values().map(Vec::len).sum();
    // A share of a long run may be too small to say.
    assert!(
        all < 30 || 3 * right >= 2 * all,
        "only {right} of {all} programs are judged to be right: what is tested?"
    );
}

#[test]
fn derivatives_of_random_programs_are_the_oracles_one() {
    run(0, 2);
}

#[test]
fn derivatives_of_random_programs_are_the_oracles_two() {
    run(1, 2);
}

#[test]
fn derivatives_of_programs_with_small_values_jumps_and_reductions_are_the_oracles() {
    run_seeds(PHYSICAL, PHYSICAL_CASES, 0, 1);
}

#[test]
fn derivatives_of_programs_with_named_elements_and_recurrences_are_the_oracles() {
    run_seeds(RECURRENT, RECURRENT_CASES, 0, 1);
}

/// Programs whose gradients had other bits under another budget (the first), or did not fit a larger budget where they
/// fitted a smaller one, or had ties of minima that a loop also reads (two), or wrote a part of an array in a region that
/// yields (the last).
const MENDED: [u64; 7] = [304_162, 402_025, 404_206, 408_105, 605_050, 608_829, 801_708];

#[test]
fn programs_that_failed_before_are_right() {
    for seed in MENDED {
        let verdict = case(seed).check(&|| cpus(seed));
        assert_eq!(verdict.kind(), "right: ", "{}", report(seed, &verdict));
    }
}

/// A program with millions of equal candidates for one minimum: the oracle's tape took the memory of the machine.
const TIES: u64 = 973_474;

#[test]
fn a_program_with_millions_of_ties_is_judged_where_it_is_small_and_given_up_where_it_is_large() {
    let whole = case(TIES);
    let small = Case { sizes: Sizes { n: 33, ..whole.sizes }, ..whole.clone() };
    assert_eq!(small.check(&Vec::new), Verdict::Right);
    let given_up = matches!(whole.check(&Vec::new), Verdict::NotJudged(why) if why.contains("statements"));
    assert!(given_up, "{:?}", whole.check(&Vec::new));
}

#[test]
#[ignore = "a tool: prints what the seeds in EBBTIDE_SEEDS shrink to, or with EBBTIDE_WHOLE what they are"]
fn what_seeds_shrink_to() {
    let seeds = std::env::var("EBBTIDE_SEEDS").unwrap_or_default();
    for seed in seeds.split(',').filter_map(|seed| seed.parse().ok()) {
        if std::env::var_os("EBBTIDE_WHOLE").is_some() {
            println!("{}", text(&case(seed).sketch));
            continue;
        }
        let verdict = case(seed).check(&|| devices(seed));
        println!("{}", report(seed, &verdict));
    }
}
