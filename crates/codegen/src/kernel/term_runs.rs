//! Sums of floats at elements that iterations share, whose terms a loop counts (law 8): which arrays and updates of it. Found by
//! `analysis::term_runs`.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Indices};

/// The updates of a loop whose terms are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermRuns {
    /// Their arrays, in source order.
    pub arrays: Vec<ArrayId>,
    pub(crate) updates: BTreeSet<(ArrayId, Indices)>,
    /// Updates of components that always get their terms together, one after the other: by the last of each, how far the elements
    /// of the others are from its own, in order. One count is enough for them.
    pub(crate) groups: BTreeMap<(ArrayId, Indices), Vec<i64>>,
    /// The others.
    pub(crate) riders: BTreeSet<(ArrayId, Indices)>,
    /// How many terms an iteration adds to an array, or to all of one component of it, at most, where that is a number.
    pub each: Option<usize>,
    /// How many iterations of a loop a GPU takes in one batch, where that is a number and places are narrow: where all of them are in
    /// one, nothing is kept from batch to batch.
    pub batch: Option<usize>,
}

impl TermRuns {
    /// The number of an array.
    pub(crate) fn number(&self, array: ArrayId) -> Option<usize> {
        self.arrays.iter().position(|a| *a == array)
    }
}
