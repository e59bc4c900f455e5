//! Shadows, and what they hold where a statement is reversed.

use std::collections::BTreeMap;

use ebbtide_ir::{ArrayId, ValueId};

/// The shadows of active things.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shadows {
    pub arrays: BTreeMap<ArrayId, ArrayId>,
    /// Of program-level values: an array of rank 0.
    pub values: BTreeMap<ValueId, ArrayId>,
}

/// What a shadow holds, as far as the text knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShadowState {
    /// Zeros.
    Zeros,
    /// Zeros in the meaning of the program, anything in memory.
    Nothing,
    /// Numbers.
    Numbers,
}

/// What holds after either of two.
pub(crate) fn join(a: ShadowState, b: ShadowState) -> ShadowState {
    match (a, b) {
        _ if a == b => a,
        (ShadowState::Numbers, _) | (_, ShadowState::Numbers) => ShadowState::Numbers,
        _ => ShadowState::Nothing,
    }
}
