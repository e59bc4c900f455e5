//! The text of a program for a GPU.

use std::sync::Arc;

use ebbtide_codegen::{Unit, cuda_unit};
use ebbtide_ir::passes::simplify_segments;
use ebbtide_ir::{Block, Facts, Program};

/// The CUDA C text of the segments of a program, after the same passes as on every compiled device; and the program whose
/// values it speaks of.
pub fn text(
    program: &Arc<Program>,
    facts: &Facts,
    segments: &[&Block],
) -> Result<(Unit, Arc<Program>, Vec<Block>), String> {
    let (program, unit, segments) = match simplify_segments(program, segments) {
        Ok(simple) => {
            let blocks: Vec<&Block> = simple.segments.iter().collect();
            let unit = cuda_unit(&simple.program, &simple.facts, &blocks);
            (Arc::new(simple.program), unit, simple.segments)
        }
        Err(flaw) => {
            tracing::warn!(program = program.name, reason = flaw.message, "compiled without simplifying it");
            let unit = cuda_unit(program, facts, segments);
            (program.clone(), unit, segments.iter().map(|block| (*block).clone()).collect())
        }
    };
    Ok((unit.map_err(|e| e.to_string())?, program, segments))
}
