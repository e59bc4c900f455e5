//! What stands before the segments of a text: fixed files, and functions for a shape of vectors or a type.

mod matmul;

use ebbtide_math::Format;
use ebbtide_math::c::Shape;

use crate::kernel::machine::WORTH_SHARING;

pub(crate) use matmul::products;

/// The prelude of CUDA C.
pub(crate) const CUDA: &str = include_str!("prelude.cu");

/// How noted terms are sorted and combined, in CUDA C.
pub(crate) const ORDERED_SCATTER: &str = include_str!("ordered_scatter.cu");

/// The prelude of C.
pub(crate) fn c() -> String {
    include_str!("prelude.c").replace("$WORTH_SHARING", &format!("{WORTH_SHARING:.1}"))
}

/// The functions that multiply matrices of a type, in CUDA C.
pub(crate) fn cuda_products(ty: &str) -> String {
    let chunk = ebbtide_ir::MATMUL_CHUNK.to_string();
    include_str!("matmul.cu").replace("$CHUNK", &chunk).replace("$T", ty)
}

/// The functions that let products wait, with places for so many matrices at a time.
pub(crate) fn waiting(ty: &str, places: usize) -> String {
    include_str!("deferred.c").replace("$T", ty).replace("$PLACES", &places.to_string())
}

/// Loads, stores and gathers of one shape of vectors.
pub(crate) fn vectors(shape: Shape) -> String {
    let letter = if shape.format() == Format::F64 { "d" } else { "s" };
    let (bits, lanes) = (shape.bytes() * 8 / shape.lanes(), shape.lanes());
    include_str!("vectors.c")
        .replace("$V", &shape.to_string())
        .replace("$T", &format!("f{bits}"))
        .replace("$I", &format!("i{bits}"))
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
