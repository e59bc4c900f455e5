//! The iteration of a loop that runs inside its parallel loops.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, ValueId};

/// The iteration being printed: the arrays that it holds in variables, and its index.
#[derive(Default)]
pub(crate) struct Own {
    pub arrays: BTreeSet<ArrayId>,
    pub variables: Vec<ValueId>,
    /// How many places of each tape it has used so far, and how many a pass uses.
    pub tapes: BTreeMap<ArrayId, (u32, u32)>,
}

impl Own {
    /// Which of the places that are at hand the next push or pop uses.
    pub fn next_place(&mut self, array: ArrayId) -> String {
        let (used, all) = self.tapes.entry(array).or_insert((0, 1));
        *used += 1;
        match all {
            1 => "nth".to_string(),
            all => format!("{all} * nth + {}", *used - 1),
        }
    }
}
