//! What a Mixed schedule costs, without walking it.

use std::collections::HashMap;

use crate::mixed_plan::{First, MixedPlan};

/// What a part costs, counted in units, where its first state is at hand and in no slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub advances: u128,
    pub stores: u128,
    pub loads: u128,
    /// The first state is kept: a part that follows a load need not store it again.
    keeps_first: bool,
    pub peak_states: u64,
    /// Tapes live at one time, the one to be reversed at once included.
    pub peak_tapes: u64,
}

/// The costs of all parts of a plan that differ.
pub(crate) struct Parts<'a> {
    plan: &'a MixedPlan,
    known: HashMap<(u64, u64), Part>,
}

impl<'a> Parts<'a> {
    pub fn new(plan: &'a MixedPlan, units: u64, slots: u64) -> Parts<'a> {
        let mut parts = Parts { plan, known: HashMap::new() };
        // An explicit work list: a part is done when its own parts are.
        let mut work = vec![(units, slots)];
        while let Some(&(units, slots)) = work.last() {
            if parts.simple(units, slots).is_some() || parts.known.contains_key(&(units, slots)) {
                work.pop();
                continue;
            }
            let needs = match plan.first(units, slots) {
                First::Tape => [(units - 1, slots - 1); 2],
                First::Advance(distance) => [(units - distance, slots - 1), (distance, slots)],
            };
            match needs.into_iter().find(|&need| parts.find(need).is_none()) {
                Some(need) => work.push(need),
                None => {
                    let part = parts.combine(units, slots);
                    parts.known.insert((units, slots), part);
                }
            }
        }
        parts
    }

    pub fn of(&self, units: u64, slots: u64) -> Part {
        self.find((units, slots)).unwrap_or_default()
    }

    fn find(&self, (units, slots): (u64, u64)) -> Option<Part> {
        self.simple(units, slots).or_else(|| self.known.get(&(units, slots)).copied())
    }

    /// Parts that need no table.
    fn simple(&self, units: u64, slots: u64) -> Option<Part> {
        let n = u128::from(units);
        if units <= slots.saturating_add(1) {
            return Some(Part { peak_tapes: units, ..Part::default() });
        }
        // The last unit is recorded on the way and the first two are taped together after one load.
        (slots == 1).then(|| Part {
            advances: n * (n - 1) / 2 - 1,
            stores: 1,
            loads: n - 2,
            keeps_first: true,
            peak_states: 1,
            peak_tapes: 2,
        })
    }

    fn combine(&self, units: u64, slots: u64) -> Part {
        match self.plan.first(units, slots) {
            First::Tape => {
                let rest = self.of(units - 1, slots - 1);
                Part { keeps_first: false, peak_tapes: rest.peak_tapes + 1, ..rest }
            }
            First::Advance(distance) => {
                let (right, left) = (self.of(units - distance, slots - 1), self.of(distance, slots));
                Part {
                    advances: u128::from(distance) + right.advances + left.advances,
                    stores: 1 + right.stores + left.stores - u128::from(left.keeps_first),
                    loads: 1 + right.loads + left.loads,
                    keeps_first: true,
                    peak_states: (1 + right.peak_states).max(left.peak_states),
                    peak_tapes: right.peak_tapes.max(left.peak_tapes),
                }
            }
        }
    }

    /// How often one unit of a part is advanced over.
    pub fn advances_over(&self, unit: u64, units: u64, slots: u64) -> u128 {
        let (mut unit, mut units, mut slots, mut count) = (unit, units, slots, 0);
        while units > slots.saturating_add(1) {
            match self.plan.first(units, slots) {
                First::Tape if unit == 0 => return count,
                First::Tape => (unit, units, slots) = (unit - 1, units - 1, slots - 1),
                First::Advance(distance) if unit < distance => (units, count) = (distance, count + 1),
                First::Advance(distance) => {
                    (unit, units, slots) = (unit - distance, units - distance, slots - 1)
                }
            }
        }
        count
    }
}
