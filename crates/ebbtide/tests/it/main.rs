//! Tests of the language: what programs become, what they compute, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adjoints;
mod any_program;
mod behind;
mod body_loops;
mod build_errors;
mod calls;
mod checked;
mod control;
mod derivatives;
mod design;
mod durable;
mod expressions;
mod fibres;
mod flows;
mod generic;
mod gradients;
mod host;
mod interior;
mod judges;
mod labels;
mod library;
mod methods;
mod on_tape;
mod options;
mod other_types;
mod programs_as_arguments;
mod recorded;
mod recurrent;
mod remainders;
mod reshaping;
mod rewritten;
mod rules;
mod scatter;
mod schedules;
mod short_rows;
mod structs;
mod tiers;
mod trajectories;
mod uncounted;
mod watched;
mod yielding_gradients;
mod yields;

#[path = "../../../snapshot/tests/support/folder.rs"]
mod folder;

/// The CPU. Its code is compiled quickly: these programs are small, and there are many of them.
fn cpu() -> ebbtide::Device {
    ebbtide_cpu::Options::new()
        .optimize(ebbtide_cpu::Optimize::Never)
        .build()
        .expect("tests need a C compiler")
        .0
}

/// Compares the text form of a program.
fn check<P: ebbtide::__lang::Source>(program: ebbtide::Program<P>, expected: expect_test::Expect) {
    program.ir().expect("the program is valid");
    expected.assert_eq(&program.to_string());
}
