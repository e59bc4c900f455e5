//! The C text of programs: golden, with vectors of 16 bytes; and what the programs of all golden texts compute.

use std::process::Command;

use ebbtide_codegen::{Target, Threads, c_unit};
use ebbtide_conformance::Input;
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{Block, Literal, Program, Type};
use ebbtide_runtime::{Compiled, Next};
use expect_test::{ExpectFile, expect_file};

use crate::cuda_text::{blocks_of_reversed, reversed, yielding};
use crate::gradients::with_misfit;
use crate::stages::{World, drive};
use crate::{boundaries, devices, gradients, programs};

/// Compares the functions of a program, without what stands before them in every text.
fn check(program: &Program, expected: ExpectFile) {
    check_blocks(program, &[&program.body], expected);
}

fn check_blocks(program: &Program, blocks: &[&Block], expected: ExpectFile) {
    let simple = simplify_segments(program, blocks).unwrap();
    let blocks: Vec<&Block> = simple.segments.iter().collect();
    let unit = c_unit(
        &simple.program,
        &simple.facts,
        &blocks,
        Target { vector_bytes: 16, threads: Threads::Several },
    )
    .unwrap();
    let functions: Vec<&str> = unit.source.split("\ni64 segment_").skip(1).collect();
    expected.assert_eq(&functions.join("\n---\n"));
}

#[test]
fn a_pointwise_loop_runs_in_vectors() {
    check(&programs::pointwise(), expect_file!["../golden/pointwise.c"]);
}

#[test]
fn a_periodic_stencil_has_an_interior() {
    check(&programs::burgers(), expect_file!["../golden/burgers.c"]);
}

#[test]
fn rows_of_a_plane_have_an_interior() {
    check(&programs::wave(), expect_file!["../golden/wave.c"]);
}

#[test]
fn conditions_on_columns_are_decided_in_the_interior() {
    check(&boundaries::guarded(1, Type::F32), expect_file!["../golden/guarded.c"]);
}

#[test]
fn stages_that_may_yield_begin_at_labels() {
    check(&yielding(), expect_file!["../golden/yielding.c"]);
}

#[test]
fn both_halves_of_a_reversed_loop_use_a_tape() {
    let program = reversed(&with_misfit(programs::pointwise(), "s"), &["s", "p"]);
    check_blocks(&program, &blocks_of_reversed(&program), expect_file!["../golden/pointwise_reversed.c"]);
}

fn arrays(shapes: &[&[usize]]) -> Vec<Input> {
    shapes.iter().zip(1..).map(|(shape, seed)| Input::Array(shape.to_vec(), seed)).collect()
}

#[test]
pub fn programs_of_golden_texts_are_the_same_on_the_interpreter_and_on_their_target() {
    let steps = || [Input::Scalar(Literal::index(3))];
    for n in [1, 2, 3, 17, 70] {
        let inputs = arrays(&[&[n], &[n]]).into_iter().chain(steps());
        devices::check(&programs::pointwise(), &inputs.collect::<Vec<_>>()).unwrap();
        let scalars = [0.1, 0.05].map(|x| Input::Scalar(Literal::from(x)));
        let inputs = arrays(&[&[n], &[n]]).into_iter().chain(scalars).chain(steps());
        devices::check(&programs::burgers(), &inputs.collect::<Vec<_>>()).unwrap();
    }
    for [n, m] in [[8, 9], [33, 70]] {
        let inputs = arrays(&[&[n, m], &[n, m], &[n, m], &[3], &[3, m]]).into_iter().chain(steps());
        devices::check(&programs::wave(), &inputs.collect::<Vec<_>>()).unwrap();
        let inputs = arrays(&[[n, m].as_slice(); 4]).into_iter().chain(steps());
        devices::check(&boundaries::guarded(1, Type::F32), &inputs.collect::<Vec<_>>()).unwrap();
    }
}

#[test]
pub fn golden_texts_that_yield_or_reverse_are_the_same_on_the_interpreter_and_on_their_target() {
    gradients::pointwise(19, 3).check_bits(3);
    let runs = devices::all().map(|device| {
        let compiled = Compiled::new(&yielding(), &device).unwrap();
        let mut world = World::new(&device, 64, &[0, 1, 0], &[0]);
        let yields = drive(&compiled, &[], &mut world, |_| Next::Resume).unwrap();
        (yields.len(), world.seen())
    });
    assert_eq!(runs[0].0, 1);
    runs.iter().for_each(|run| assert_eq!(*run, runs[0]));
}

/// Tests of this binary that compare a device with the interpreter: of programs without sums, and of programs with sums.
const STENCILS: &[&str] =
    &["c_text::programs_of_golden_texts_are_the_same_on_the_interpreter_and_on_their_target"];
const SUMS: &[&str] = &[
    "workloads::ordered_sums_at_elements_that_data_choose_are_the_same_everywhere",
    "workloads::ordered_sums_with_as_many_terms_as_data_say_are_the_same_everywhere",
    "workloads::sums_over_long_iterations_are_the_same_everywhere",
    "workloads::products_beside_sums_of_all_kinds_are_the_same_everywhere",
];

/// Runs such tests without optional steps of code generation.
pub fn without_optional_steps(arguments: &[&str], on: &str) {
    let all = "faults at end,interior,hoist invariants,vectorise,jam,jam rows,row tiles,lanes of sums,specialise,narrow index,predicate,address reuse,\
               sink stores,buckets,peel,kept terms,noted terms,interchange,deferred products";
    let of_loops = "buckets,peel,kept terms,noted terms,interchange,deferred products";
    let runs = [
        (all, STENCILS),
        (all, SUMS),
        ("jam", STENCILS),
        ("hoist invariants", STENCILS),
        ("interior", STENCILS),
        (of_loops, SUMS),
    ];
    for (left_out, tests) in runs {
        let ran = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .arg("--exact")
            .args(tests.iter().map(|test| format!("{on}{test}")))
            .env("EBBTIDE_WITHOUT", left_out)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        let passed = format!("{} passed", tests.len());
        assert!(ran.status.success() && said.contains(&passed), "without {left_out}: {said}");
    }
}

#[test]
fn the_same_bits_come_of_programs_whose_optional_steps_are_left_out() {
    without_optional_steps(&[], "");
}
