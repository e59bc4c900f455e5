//! The totals of a Multistage schedule, without running it.
//!
//! Gaps of the same length with the same slots cost the same, so each kind is counted once.

use std::collections::HashMap;

use crate::placement::Placement;
use crate::{Options, Shape, Totals, revolve};

/// A gap: its first state is in one of `slots` slots on disk, or at hand alone with as many free.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Gap {
    on_disk: bool,
    length: u64,
    slots: usize,
}

pub(crate) struct Counter<'a> {
    placement: &'a Placement,
    slots: usize,
    /// Of gaps below the last one.
    options: Options,
    known: HashMap<Gap, Totals>,
}

impl<'a> Counter<'a> {
    pub fn new(placement: &'a Placement, slots: usize, options: Options) -> Counter<'a> {
        Counter { placement, slots, options: options.shape(Shape::RecordLast), known: HashMap::new() }
    }

    /// What a gap costs whose first state is on disk, in one of `slots` slots, and at hand.
    pub fn on_disk(&mut self, length: u64, slots: usize) -> Totals {
        let whole = Gap { on_disk: true, length, slots };
        let mut work = vec![whole];
        while let Some(&gap) = work.last() {
            let Some((left, right)) = self.parts(gap).filter(|_| !self.known.contains_key(&gap)) else {
                work.pop();
                let (slots, options) = (self.slots, self.options);
                let in_memory = || revolve::totals(gap.length, slots, options).unwrap_or_default();
                self.known.entry(gap).or_insert_with(in_memory);
                continue;
            };
            match (self.known.get(&left), self.known.get(&right)) {
                (Some(below), Some(above)) => {
                    let mut totals = *below;
                    totals.add(above);
                    totals.advances += u128::from(left.length);
                    totals.disk.loads += 1;
                    totals.disk.stores += u128::from(!gap.on_disk);
                    totals.disk.peak_slots = below.disk.peak_slots.max(1 + above.disk.peak_slots);
                    self.known.insert(gap, totals);
                }
                (below, above) => {
                    let missing = [(below.is_none(), left), (above.is_none(), right)];
                    work.extend(missing.into_iter().filter(|(missing, _)| *missing).map(|(_, part)| part));
                }
            }
        }
        self.known.get(&whole).copied().unwrap_or_default()
    }

    /// The two parts of a gap that is split: the left one, from the state on disk, and the right one.
    fn parts(&self, gap: Gap) -> Option<(Gap, Gap)> {
        let Gap { on_disk, length, slots } = gap;
        if slots == 0 || length <= self.options.block {
            return None;
        }
        if !on_disk && !self.placement.writes(length, slots, false) {
            return None;
        }
        let advance = self.placement.advance(length, slots)?;
        let left = Gap { on_disk: true, length: advance, slots };
        Some((left, Gap { on_disk: false, length: length - advance, slots: slots - 1 }))
    }
}
