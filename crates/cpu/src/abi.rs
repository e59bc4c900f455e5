//! What generated code is given: the prelude of the C text declares the same.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64};

use ebbtide_codegen::COUNTERS;
use ebbtide_runtime::TapePiece;

use crate::operation::Context;

/// What all threads of a launch share; `eb_shared` of the prelude.
#[repr(C)]
pub(crate) struct Shared {
    pub fault: i32,
    pub access: i32,
    pub dimension: i64,
    pub index: i64,
    pub extent: i64,
    pub at: [i64; COUNTERS],
    pub verdict: i32,
    pub stop: *const AtomicBool,
    pub done: *const AtomicI64,
    pub apart: [i64; 2],
    pub met: i64,
    pub now: extern "C" fn() -> i64,
    pub arrived: i32,
    pub generation: AtomicI32,
    pub spins: i32,
    pub sleepers: AtomicI32,
    pub slept: AtomicI64,
    pub sleep: unsafe extern "C" fn(*const Shared, i32),
    pub wake: unsafe extern "C" fn(*const Shared),
    pub outcome: i32,
    pub region: i32,
    pub reason: i64,
    pub context: *const Context<'static>,
    pub call: extern "C" fn(*const Context<'static>, i64, *const *mut u8, *const i64, *const u64) -> i32,
}

/// What one thread of a launch works on; `eb_frame` of the prelude.
#[repr(C)]
pub(crate) struct ThreadFrame {
    pub data: *mut *mut u8,
    pub shape: *const i64,
    pub tape: *mut *mut *mut u8,
    pub depth: *mut i64,
    pub capacity: *const i64,
    pub values: *mut u64,
    pub locals: *mut u64,
    pub passes: *mut i64,
    pub bounds: *mut [i64; 2],
    pub kept: *const *mut u8,
    pub scalars: *const u64,
    pub partials: *mut u64,
    pub places: i64,
    pub staging: *mut u8,
    pub room: i64,
    pub staged: i64,
    pub shared: *mut Shared,
    pub thread: i64,
    pub threads: i64,
    pub resume: i64,
    pub passed: i64,
    pub apart: i64,
    pub looks: i64,
}

/// A packed tape; `eb_packed` of the prelude.
#[repr(C)]
pub(crate) struct Packed {
    pub pieces: *const TapePiece,
    pub count: i64,
}

/// The function of a segment.
pub(crate) type Segment = unsafe extern "C" fn(*mut ThreadFrame) -> i64;
