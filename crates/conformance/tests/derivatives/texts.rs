//! The C and CUDA C texts of random programs and of their adjoints, as files: a change of `codegen` that is meant to leave them
//! as they are is held to that by comparing the folders of two runs.

use std::path::Path;

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_codegen::{Target, Threads, c_unit, cuda_unit};
use ebbtide_conformance::random::lower::lower;
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{Block, Program, Stmt, walk};

use super::{case, variable};
use ebbtide_conformance::random::generate::PHYSICAL;

/// The segments that drivers run of a program.
fn segments(program: &Program) -> Vec<&Block> {
    let mut blocks = vec![&program.body];
    walk(&program.body, &mut |stmt| match stmt {
        Stmt::Forward(forward) => blocks.extend([&forward.advance, &forward.record]),
        Stmt::Backward(backward) => blocks.push(&backward.reverse),
        _ => {}
    });
    blocks
}

fn write(folder: &Path, name: &str, program: &Program) {
    let Ok(simple) = simplify_segments(program, &segments(program)) else { return };
    let blocks: Vec<&Block> = simple.segments.iter().collect();
    let (program, facts) = (&simple.program, &simple.facts);
    for vector_bytes in [16, 64] {
        let unit =
            c_unit(program, facts, &blocks, Target { vector_bytes, threads: Threads::Several }).unwrap();
        std::fs::write(folder.join(format!("{name}.{vector_bytes}.c")), unit.source).unwrap();
    }
    let unit = cuda_unit(program, facts, &blocks).unwrap();
    std::fs::write(folder.join(format!("{name}.cu")), unit.source).unwrap();
}

#[test]
#[ignore = "writes files: EBBTIDE_TEXTS says where"]
fn texts_of_random_programs() {
    let folder = std::env::var_os("EBBTIDE_TEXTS").expect("EBBTIDE_TEXTS names a folder");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).unwrap();
    let cases = variable("EBBTIDE_CASES").unwrap_or(40);
    for seed in (0..cases).chain(PHYSICAL..PHYSICAL + cases / 2) {
        let case = case(seed);
        let Ok(program) = lower(&case.sketch) else { continue };
        write(folder, &format!("{seed}"), &program);
        let wrt = case.wrt().into_iter().map(str::to_string).collect();
        let request = Request { of: "loss".to_string(), wrt, may_be_zero: true, ..Request::default() };
        for (kind, inner) in [("recorded", Inner::Recorded), ("swept", Inner::Swept)] {
            if let Ok(gradient) = gradient(&program, &request, inner) {
                write(folder, &format!("{seed}.{kind}"), &gradient.program);
            }
        }
    }
}
