//! What stands before the segments of a text: fixed files, and functions for a shape of vectors or a type.

mod matmul;
mod transpose;

use ebbtide_ir::{RUN, leaf};
use ebbtide_math::Format;
use ebbtide_math::c::Shape;

use crate::analysis::bucket_scatter::{CHUNK, TABLES};
use crate::analysis::kept_terms::KEPT;
use crate::kernel::machine::{COMBINED, NOTED, WORTH_NOTING, WORTH_SHARING};

pub(crate) use matmul::products;
pub(crate) use transpose::transposes;

/// The prelude of CUDA C: what a launch is given, how its threads meet, what they compute with.
pub(crate) fn cuda() -> String {
    let text = concat!(include_str!("launch.cu"), include_str!("barrier.cu"), include_str!("prelude.cu"));
    leaves(text)
}

/// How noted terms are sorted and combined, in CUDA C.
pub(crate) const ORDERED_SCATTER: &str = include_str!("ordered_scatter.cu");

/// The prelude of C.
pub(crate) fn c() -> String {
    leaves(include_str!("prelude.c"))
        .replace("$WORTH_SHARING", &format!("{WORTH_SHARING:.1}"))
        .replace("$KEPT", &KEPT.to_string())
        .replace("$RUN", &RUN.to_string())
}

/// The text with the numbers of law 8 in it.
fn leaves(text: &str) -> String {
    text.replace("$LEAVES", &leaf::MOST.to_string()).replace("$LEAF", &leaf::LEAST.to_string())
}

/// How terms of an element are counted, in C.
pub(crate) const TERM_RUNS: &str = include_str!("term_runs.c");

/// How threads note terms in buckets, in C.
pub(crate) fn bucket_scatter() -> String {
    include_str!("bucket_scatter.c")
        .replace("$CHUNK", &CHUNK.to_string())
        .replace("$TABLES", &TABLES.to_string())
        .replace("$COMBINED", &format!("{COMBINED:.1}"))
        .replace("$NOTED", &format!("{NOTED:.1}"))
        .replace("$WORTH_NOTING", &format!("{WORTH_NOTING:.1}"))
}

/// The functions that multiply matrices of a type, in CUDA C.
pub(crate) fn cuda_products(ty: &str) -> String {
    let chunk = ebbtide_ir::MATMUL_CHUNK.to_string();
    [include_str!("small_products.cu"), include_str!("large_products.cu"), include_str!("matmul.cu")]
        .concat()
        .replace("$CHUNK", &chunk)
        .replace("$T", ty)
}

/// The functions that let products wait, with places for so many matrices at a time.
pub(crate) fn waiting(ty: &str, places: usize) -> String {
    include_str!("deferred.c").replace("$T", ty).replace("$PLACES", &places.to_string())
}

/// Loads and gathers of so many numbers of a type that a loop reads beside its own.
pub(crate) fn other_vectors(ty: &str, lanes: usize) -> String {
    include_str!("other_vectors.c")
        .replace("$V", &format!("{ty}x{lanes}"))
        .replace("$T", ty)
        .replace("$N", &lanes.to_string())
}

/// How truth values become numbers of one shape of vectors.
pub(crate) fn truths(shape: Shape) -> String {
    let (lanes, bytes) = (shape.lanes(), shape.bytes() / shape.lanes());
    let each = |text: &dyn Fn(usize) -> String| (0..lanes).map(text).collect::<Vec<_>>().join(", ");
    include_str!("truths.c")
        .replace("$V", &shape.to_string())
        .replace("$U", &format!("u{}", 8 * bytes))
        .replace("$W", &lanes.div_ceil(bytes).to_string())
        .replace("$AT", &each(&|k| format!("w[{}]", k / bytes)))
        .replace("$BY", &each(&|k| (8 * (k % bytes)).to_string()))
        .replace("$ONE", if bytes == 8 { "0x3ff0000000000000" } else { "0x3f800000" })
        .replace("$N", &lanes.to_string())
}

/// Loads, stores and gathers of one shape of vectors.
pub(crate) fn vectors(shape: Shape) -> String {
    let letter = if shape.format() == Format::F64 { "d" } else { "s" };
    let (bits, lanes) = (shape.bytes() * 8 / shape.lanes(), shape.lanes());
    let from = |width: usize| (0..lanes).map(|k| format!("v[{}]", (k + width) % lanes)).collect::<Vec<_>>();
    let halves =
        std::iter::successors(Some(lanes / 2), |width| Some(width / 2)).take_while(|width| *width > 0);
    let tree: String = halves.map(|width| format!("v = v + ($V){{{}}}; ", from(width).join(", "))).collect();
    include_str!("vectors.c")
        .replace("$TREE", &tree)
        .replace("$COUNT", &(0..lanes).map(|k| k.to_string()).collect::<Vec<_>>().join(", "))
        .replace("$V", &shape.to_string())
        .replace("$T", &format!("f{bits}"))
        .replace("$I", &format!("i{bits}"))
        .replace("$S", &bits.to_string())
        .replace("$M", &format!("m{bits}x{lanes}"))
        .replace("$N", &lanes.to_string())
        .replace(
            "$P",
            if shape.bytes() == 64 {
                "_mm512"
            } else if shape.bytes() == 32 {
                "_mm256"
            } else {
                "_mm"
            },
        )
        .replace("$L", letter)
        .replace("$B", if shape.bytes() == 64 { "1" } else { "0" })
        .replace("$K", &lanes.max(8).to_string())
}
