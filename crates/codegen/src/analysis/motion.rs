//! How elements move with a loop inside an iteration.

use std::collections::BTreeSet;

use ebbtide_ir::{Affines, Indices, ValueId};

/// A loop with which elements move.
pub(crate) struct Motion<'a> {
    pub affines: &'a Affines,
    pub variable: ValueId,
    /// The values that it computes.
    pub inside: BTreeSet<ValueId>,
}

impl Motion<'_> {
    /// By how much each index of an element grows from one iteration to the next; `None` where it depends on something else that the
    /// loop computes.
    pub fn of(&self, source: Indices) -> Option<Vec<i64>> {
        let by = |v: &ValueId| {
            let mut moving = 0;
            for (atom, coefficient) in &self.affines.form(*v).terms {
                if *atom == self.variable {
                    moving = *coefficient;
                } else if self.inside.contains(atom) {
                    return None;
                }
            }
            Some(moving)
        };
        source.as_slice().iter().map(by).collect()
    }

    /// In how many iterations the loop has at one index of an array the element that it has at another one now; `None` where that
    /// is not known, or where neither moves.
    pub fn iterations_until(&self, at: Indices, ahead: Indices) -> Option<i64> {
        let mut iterations = None;
        for ((v, other), by) in at.as_slice().iter().zip(ahead.as_slice()).zip(self.of(at)?) {
            let [here, there] = [v, other].map(|v| self.affines.form(*v));
            let apart = there.constant.checked_sub(here.constant)?;
            let own = if by == 0 { None } else { Some(apart.checked_div(by)?) };
            if here.terms != there.terms || own.unwrap_or(0).checked_mul(by)? != apart {
                return None;
            }
            if let Some(own) = own
                && iterations.replace(own).is_some_and(|other| other != own)
            {
                return None;
            }
        }
        iterations
    }
}
