//! What a launch is given and gives back, in the layout of the prelude.

use ebbtide_codegen::COUNTERS;

use crate::sys::Address;

/// As many values can be changed with one launch; `EB_PATCHES` of the prelude.
pub const PATCHES: usize = 6;

/// What a launch is given; `eb_launch` of the prelude.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Launch {
    pub data: Address,
    pub tape: Address,
    pub depth: Address,
    pub capacity: Address,
    pub values: Address,
    pub locals: Address,
    pub passes: Address,
    pub bounds: Address,
    pub kept: Address,
    pub scalars: Address,
    pub partials: Address,
    pub stage: Address,
    pub runs: Address,
    pub shared: Address,
    pub said: Address,
    pub meet: Address,
    pub next: Address,
    pub tables: Address,
    pub report: Address,
    pub words: i64,
    pub resume: i64,
    pub staged: Address,
    pub received: Address,
    pub pairs: i64,
    pub patches: i32,
    pub patched: [i32; PATCHES],
    pub patch: [u64; PATCHES],
}

/// What all threads of a launch share; `eb_shared` of the prelude.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Shared {
    pub fault: i32,
    pub access: i32,
    pub dimension: i64,
    pub index: i64,
    pub extent: i64,
    pub at: [i64; COUNTERS],
    pub ended: i32,
    pub outcome: i32,
    pub region: i64,
    pub reason: i64,
    pub exchanged: i32,
}

const _: () = assert!(size_of::<Shared>() == 128, "the prelude declares as many bytes");
const _: () = assert!(size_of::<Launch>() == 272, "the prelude declares as many bytes");
