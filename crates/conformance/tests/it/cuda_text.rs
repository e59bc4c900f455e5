//! The CUDA C text of programs: golden, without a GPU.

use std::sync::Arc;

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_cuda::compiler::{Architecture, Kernels, Places, compile};
use ebbtide_ir::{Block, Program, Stmt, Type, parse, verify, verify_source, walk_program_level};
use expect_test::{ExpectFile, expect_file};

use crate::gradients::with_misfit;
use crate::meetings::{Between, survey};
use crate::{boundaries, interchange, programs, stages};

/// The text of a program, all of it.
fn text(program: &Program) -> String {
    text_of(program, &[&program.body])
}

fn text_of(program: &Program, blocks: &[&Block]) -> String {
    let facts = verify(program).unwrap();
    ebbtide_cuda::text(&Arc::new(program.clone()), &facts, blocks).unwrap().0.source
}

/// Compares the kernels of a program, without what stands before them in every text.
fn check(program: &Program, expected: ExpectFile) {
    check_blocks(program, &[&program.body], expected);
}

fn check_blocks(program: &Program, blocks: &[&Block], expected: ExpectFile) {
    let text = text_of(program, blocks);
    let kernels = text.split("\nEB_SEGMENT(segment_").skip(1);
    let kernels = kernels.map(|kernel| kernel.split("#ifdef EB_BATCH").next().unwrap_or(kernel));
    expected.assert_eq(&kernels.collect::<Vec<_>>().join("\n---\n"));
}

/// Stages of which one may yield.
pub fn yielding() -> Program {
    use stages::{Node, region};
    stages::program(&[Node::Stage(0), Node::For(3, vec![Node::Stage(1), region(0, vec![Node::Stage(2)])])])
}

#[test]
fn a_pointwise_loop_is_proved_before_it_starts() {
    check(&programs::pointwise(), expect_file!["../golden/pointwise.cu"]);
}

/// The gradient of `loss`.
pub fn reversed(program: &Program, wrt: &[&str]) -> Program {
    let wrt = wrt.iter().map(|name| name.to_string()).collect();
    let request = Request { of: "loss".into(), wrt, ..Request::default() };
    gradient(program, &request, Inner::Recorded).unwrap().program
}

/// The blocks of a gradient's reversed loops, three of each.
pub fn blocks_of_reversed(program: &Program) -> Vec<&Block> {
    let mut blocks: Vec<&Block> = Vec::new();
    walk_program_level(&program.body, &mut |stmt| match stmt {
        Stmt::Forward(forward) => blocks.extend([&forward.advance, &forward.record]),
        Stmt::Backward(backward) => blocks.push(&backward.reverse),
        _ => {}
    });
    blocks
}

#[test]
fn both_halves_of_a_reversed_pointwise_loop_run_inside_their_parallel_loops() {
    let program = with_misfit(programs::pointwise(), "s");
    let program = reversed(&program, &["s", "p"]);
    check_blocks(&program, &blocks_of_reversed(&program), expect_file!["../golden/pointwise_reversed.cu"]);
}

#[test]
fn loops_over_own_elements_run_inside_their_parallel_loops() {
    for program in
        [interchange::relay(), interchange::plane(), interchange::gathered(), interchange::nested()]
    {
        assert_eq!(text(&program).matches("inside its parallel loops").count(), 1, "{}", program.name);
    }
    for program in [programs::burgers(), programs::wave(), programs::reductions(), yielding()] {
        assert!(!text(&program).contains("inside its parallel loops"), "{}", program.name);
    }
}

#[test]
fn a_periodic_stencil_has_an_interior() {
    check(&programs::burgers(), expect_file!["../golden/burgers.cu"]);
}

#[test]
fn a_plane_with_boundaries_needs_no_checks() {
    check(&programs::wave(), expect_file!["../golden/wave.cu"]);
}

#[test]
fn away_from_boundaries_there_are_no_conditions() {
    check(&boundaries::guarded(1, Type::F32), expect_file!["../golden/guarded.cu"]);
}

#[test]
fn rows_of_three_dimensions_are_counted_and_not_divided() {
    let program = "program p(u: &mut Array3<f32>) {
        for (i, j, k) in par(0..u.dim(0), 0..u.dim(1), 0..u.dim(2)) { u[[i, j, k]] = u[[i, j, k]] * 0.5f32; } }";
    let text = text(&verify_source(&parse(program).unwrap()).unwrap());
    let rows: Vec<&str> = text.split("for (nx r = first;").skip(1).collect();
    assert!(!rows.is_empty(), "{text}");
    for row in rows {
        let iterations = row.split("} } }").next().unwrap();
        assert!(iterations.contains("digit1") && !iterations.contains(" % "), "{iterations}");
    }
}

#[test]
fn a_region_that_yields_is_a_label() {
    check(&yielding(), expect_file!["../golden/yielding.cu"]);
}

/// How often all threads meet in a pass of the first loop of a program.
fn meetings(program: &Program) -> usize {
    let text = text(program);
    let kernel = text.split("pass0 = 0;\nfor").nth(1).unwrap();
    kernel.split("\nleave: ;").next().unwrap().matches("\nif (eb_barrier(f)) goto leave;").count()
}

#[test]
fn a_step_with_a_source_and_receivers_meets_once() {
    assert_eq!(meetings(&programs::wave()), 1);
    assert_eq!(meetings(&survey(Between::Point)), 1);
    assert_eq!(meetings(&survey(Between::Data)), 1);
    // What neighbours read is written, and what was written is read by all.
    assert_eq!(meetings(&survey(Between::Points)), 2);
    assert_eq!(meetings(&survey(Between::Probe)), 1);
}

#[test]
fn c49_a_yield_is_looked_for_only_where_a_region_can_yield() {
    assert!(!text(&programs::wave()).contains("outcome = 1"));
    assert_eq!(text(&yielding()).matches("outcome = 1").count(), 1);
}

#[test]
#[ignore = "needs NVRTC"]
fn loops_with_bounds_of_any_size_compile() {
    let target =
        Architecture { places: Places::Narrow, kernels: Kernels::Segments, ..Architecture::of(9, 0) };
    let machine_code = compile(&text(&crate::extremes::all()), &target);
    assert!(machine_code.is_ok_and(|code| code.starts_with(b"\x7fELF")));
}

#[test]
#[ignore = "needs NVRTC"]
fn every_fixture_compiles_with_narrow_and_with_wide_places_and_as_a_batch() {
    let own = [interchange::relay(), interchange::plane(), interchange::gathered(), interchange::nested()];
    let others = [programs::pointwise(), programs::burgers(), programs::wave(), yielding()];
    let guarded = [boundaries::guarded(1, Type::F32), boundaries::guarded(2, Type::F64)];
    let sums = [
        programs::deposits(),
        programs::counted_deposits(),
        programs::long_sums(),
        programs::products_and_sums(),
    ];
    for program in own.into_iter().chain(others).chain(guarded).chain(sums) {
        for (places, kernels) in [
            (Places::Narrow, Kernels::Segments),
            (Places::Wide, Kernels::Segments),
            (Places::Narrow, Kernels::Batch),
        ] {
            let target = Architecture { places, kernels, ..Architecture::of(9, 0) };
            let machine_code = compile(&text(&program), &target);
            let code =
                machine_code.unwrap_or_else(|e| panic!("{}, {places:?}, {kernels:?}: {e}", program.name));
            assert!(code.starts_with(b"\x7fELF"), "{}", program.name);
        }
    }
}
