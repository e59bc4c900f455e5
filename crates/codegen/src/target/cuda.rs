//! CUDA C for a grid of threads: proofs before loops, iterations far from boundaries by themselves, stores last.

use ebbtide_ir::{Block, Facts, Program};
use ebbtide_math::c::{Dialect, Item, library};

use crate::analysis::kept_terms::TERM_WORDS;
use crate::analysis::ordered_updates::STAGING_WORDS;
use crate::kernel::machine::{Family, Target, Threads};
use crate::prelude;
use crate::print::dump::dump;
use crate::print::emitter::Emitter;
use crate::unit::Unit;

use super::parts::{each_apart, in_parts};

/// Prints the segments of a program as CUDA C: kernel `segment_K` runs `segments[K]` on a cooperative grid.
///
/// Whoever compiles it defines `EB_THREADS`, the threads of a block (where there are no library operations they may be
/// fewer, a power of two of at least 32), and `EB_BLOCKS`, how many of them share a multiprocessor. Whoever runs it gives a
/// segment no more threads than its [`Width`](crate::Width) says. Compiled with `EB_BATCH`, the text has one kernel, `eb_run_batch`,
/// that runs one segment after the other in one block of a quarter of the threads.
pub fn cuda_unit(
    program: &Program,
    facts: &Facts,
    segments: &[&Block],
) -> Result<Unit, ebbtide_math::MathError> {
    let target = Target { vector_bytes: 8, threads: Threads::Several };
    dump(program, facts, segments, (Family::Cuda, target));
    let mut text = Emitter::of(program, facts, Family::Cuda, target);
    let mut pieces = Vec::new();
    for (k, block) in segments.iter().enumerate() {
        text.segment(k, block, segments);
        pieces.push(std::mem::take(&mut text.out));
    }
    let parts = each_apart(&pieces);
    text.out = in_parts(pieces, &parts);
    text.batch_kernel(segments.len());
    text.want_extremes();
    let items: Vec<Item> = text.items.iter().copied().collect();
    let mut source = library(Dialect::Cuda, &items)?;
    source.push_str(&prelude::cuda());
    if !text.noted.is_empty() || !text.counted.is_empty() {
        source.push_str(prelude::ORDERED_SCATTER);
    }
    text.combiners.values().for_each(|combiner| source.push_str(combiner));
    let before_terms = if text.noted.is_empty() { 0 } else { STAGING_WORDS };
    source.push_str(&format!("EB_DO u64 *eb_terms(const eb_thread *f, int k) {{ return f->stage + {before_terms} + {TERM_WORDS} * k; }}\n"));
    let row = program.extents_per_array();
    let extents = row * program.arrays.len().max(1);
    source.push_str(&format!(
        "/* The extents of all arrays, {row} each. */\nstruct eb_extents {{ i64 of[{extents}]; }};\n"
    ));
    for ty in &text.products {
        source.push_str(&prelude::cuda_products(ty));
    }
    let mut unit = text.finish(source, "static __device__ __noinline__");
    unit.part_count = parts.iter().max().map_or(1, |last| last + 1);
    unit.parts = parts;
    Ok(unit)
}
