//! How much iterations compute, as data (`analysis::work` counts it).

use ebbtide_ir::ValueId;

/// How much a block computes, roughly in additions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub own: u64,
    /// The blocks in it, and how often each of them runs.
    pub blocks: Vec<(Passes, Work)>,
}

/// How often a block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passes {
    Once,
    /// As a guess: its bounds are data.
    Guessed(u64),
    Between(ValueId, ValueId),
}
