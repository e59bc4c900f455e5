//! What generated code is given: the prelude of the C text declares the same.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32};

use ebbtide_codegen::COUNTERS;
use ebbtide_runtime::TapePiece;

use crate::operation::Context;

/// How many counts there are for threads to arrive at; `EB_GROUPS` of the prelude.
pub(crate) const GROUPS: usize = 16;

/// A count that threads arrive at, alone on its line of memory; `eb_count` of the prelude.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Count(pub i32);

/// What threads that wait for others read, alone on its line of memory; the end of `eb_shared`.
#[repr(C, align(64))]
pub(crate) struct Met {
    pub generation: AtomicU32,
    pub verdict: i32,
    pub sleepers: AtomicI32,
}

/// What all threads of a launch share; `eb_shared` of the prelude.
#[repr(C)]
pub(crate) struct Shared {
    pub fault: i32,
    pub access: i32,
    pub dimension: i64,
    pub index: i64,
    pub extent: i64,
    pub at: [i64; COUNTERS],
    pub stop: *const AtomicBool,
    pub done: *const AtomicI64,
    pub apart: [i64; 2],
    pub met: i64,
    pub now: extern "C" fn() -> i64,
    pub spins: i32,
    pub group: i32,
    pub slept: AtomicI64,
    pub sleep: unsafe extern "C" fn(*const Shared, u32),
    pub wake: unsafe extern "C" fn(*const Shared),
    pub outcome: i32,
    pub region: i32,
    pub reason: i64,
    pub context: *const Context<'static>,
    pub call: extern "C" fn(*const Context<'static>, i64, *const *mut u8, *const i64, *const u64) -> i32,
    pub met_at: Met,
    pub arrived: [Count; GROUPS],
    pub groups: Count,
}

/// The least logarithm of the threads that arrive at one count where so many threads have [`GROUPS`] of them; no less than
/// that of four.
pub(crate) fn group(threads: usize) -> i32 {
    (2..i32::BITS as i32 - 1)
        .find(|log| threads.saturating_sub(1) >> log < GROUPS)
        .unwrap_or(i32::BITS as i32 - 2)
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
    pub runs: *mut u8,
    pub counts: *mut u16,
    pub later: *mut u64,
    pub finished: *mut u8,
    pub countable: i64,
    pub summable: i64,
    pub counted: i64,
    pub summed: i64,
    pub epoch: i64,
    pub fills: i64,
}

/// A packed tape; `eb_packed` of the prelude.
#[repr(C)]
pub(crate) struct Packed {
    pub pieces: *const TapePiece,
    pub count: i64,
}

/// The function of a segment.
pub(crate) type Segment = unsafe extern "C" fn(*mut ThreadFrame) -> i64;

#[cfg(test)]
mod tests {
    use ebbtide_codegen::{Target, Threads, c_unit};
    use ebbtide_ir::{parse, verify};

    use super::*;

    #[test]
    fn every_thread_has_a_count_to_arrive_at() {
        for threads in 1..=4096 {
            let last = (threads - 1) >> group(threads);
            assert!(last < GROUPS, "{threads} threads: the last one is in group {last}");
        }
        assert_eq!([1, 4, 64, 65, 4096].map(group), [2, 2, 2, 3, 8]);
    }

    #[test]
    fn the_prelude_has_as_many_counts() {
        let program = parse("program p(x: &mut Array1<f64>) {\n    x[0] = 1.0;\n}\n").unwrap();
        let target = Target { vector_bytes: 32, threads: Threads::Several };
        let unit = c_unit(&program, &verify(&program).unwrap(), &[&program.body], target).unwrap();
        assert!(unit.source.contains(&format!("enum {{ EB_GROUPS = {GROUPS} }};")));
    }
}
