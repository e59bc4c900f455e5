//! GNU C for a CPU: a careful form and an interior form of every parallel loop, the interior in vectors.

use ebbtide_ir::{Block, Facts, Program};
use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Kernel};

use crate::analysis::packed_tapes::PackedTapes;
use crate::kernel::machine::{Family, Target};
use crate::prelude;
use crate::print::dump::dump;
use crate::print::emitter::Emitter;
use crate::transform::step::Step as Optional;
use crate::unit::Unit;

use super::parts::{balanced, in_parts};

/// What a function of a loop is: other parts of the text call it where there are several.
const LOOP: &str = "#ifdef EB_PART
#define EB_LOOP __attribute__((noinline, visibility(\"hidden\")))
#else
#define EB_LOOP static __attribute__((noinline))
#endif
";

/// Prints the segments of a program: function `segment_K` runs `segments[K]`.
pub fn c_unit(
    program: &Program,
    facts: &Facts,
    segments: &[&Block],
    target: Target,
) -> Result<Unit, ebbtide_math::MathError> {
    dump(program, facts, segments, (Family::C, target));
    let mut text = Emitter::of(program, facts, Family::C, target);
    if !text.forms.leaves_out(Optional::PackedTapes) {
        text.packed = PackedTapes::of(program, segments);
    }
    let mut pieces = Vec::new();
    for (k, block) in segments.iter().enumerate() {
        text.segment(k, block, segments);
        pieces.push(std::mem::take(&mut text.out));
    }
    let functions = std::mem::take(&mut text.loops.texts);
    let count = functions.len();
    let pieces: Vec<String> = functions.into_iter().chain(pieces).collect();
    let mut parts = balanced(&pieces);
    text.out = in_parts(pieces, &parts);
    if count > 0 {
        text.out.insert_str(0, &format!("{LOOP}{}", text.loops.declared));
    }
    text.want_extremes();
    let shapes = [Format::F64, Format::F32].map(|format| {
        let lanes = target.vector_bytes / if format == Format::F64 { 8 } else { 4 };
        Shape::new(format, lanes)
    });
    let shapes = [shapes[0]?, shapes[1]?];
    text.items.extend(shapes.iter().filter_map(|shape| {
        Some(Item { kernel: Kernel::Function(ebbtide_math::Function::from_name("abs")?), shape: *shape })
    }));
    let items: Vec<Item> = text.items.iter().copied().collect();
    let mut source = library(Dialect::C, &items)?;
    source.push_str(&prelude::c());
    for shape in shapes {
        source.push_str(&prelude::vectors(shape));
    }
    for (ty, lanes) in &text.others {
        source.push_str(&prelude::other_vectors(ty, *lanes));
    }
    for shape in shapes.iter().filter(|shape| text.others.contains(&("b8", shape.lanes()))) {
        source.push_str(&prelude::truths(*shape));
    }
    for (shape, ty) in shapes.into_iter().zip(["f64", "f32"]) {
        if text.products.contains(ty) || text.turned.contains(ty) {
            source.push_str(&prelude::transposes(shape, ty));
        }
        if text.products.contains(ty) {
            source.push_str(&prelude::products(shape, ty));
        }
        if let Some(places) = text.waiting_places.get(ty) {
            source.push_str(&prelude::waiting(ty, *places));
        }
    }
    if !text.counted.is_empty() || !text.combining.is_empty() {
        source.push_str(prelude::TERM_RUNS);
    }
    if !text.combining.is_empty() {
        source.push_str(&prelude::bucket_scatter());
        text.combining.values().for_each(|function| source.push_str(function));
    }
    text.adding.values().for_each(|function| source.push_str(function));
    let mut unit = text.finish(source, "static __attribute__((noinline))");
    unit.part_count = parts.iter().max().map_or(1, |last| last + 1);
    unit.parts = parts.split_off(count);
    Ok(unit)
}
