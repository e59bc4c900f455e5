use std::collections::BTreeSet;

use ebbtide_schedule::{Slot, Tier};
use ebbtide_snapshot::{Error, Memory, Place, Saved};

/// The places of all tiers, and what the schedule believes to be in them.
///
/// Belief and truth part where a state is lost: then `expected` still names it and `closest` does not.
pub(crate) struct Slots<V> {
    memory: Tiered<V>,
    disk: Option<Tiered<V>>,
    lost: BTreeSet<Slot>,
}

struct Tiered<V> {
    place: Box<dyn Place<V>>,
    expected: Vec<Option<u64>>,
    occupied: usize,
}

impl<V: Saved> Slots<V> {
    pub(crate) fn new(memory: Box<dyn Place<V>>) -> Self {
        Self { memory: Tiered::new(memory), disk: None, lost: BTreeSet::new() }
    }

    pub(crate) fn set_place(&mut self, tier: Tier, place: Box<dyn Place<V>>) {
        match tier {
            Tier::Memory => self.memory = Tiered::new(place),
            Tier::Disk => self.disk = Some(Tiered::new(place)),
        }
    }

    fn tier(&self, tier: Tier) -> Option<&Tiered<V>> {
        match tier {
            Tier::Memory => Some(&self.memory),
            Tier::Disk => self.disk.as_ref(),
        }
    }

    /// Without a disk of its own the disk tier lives in memory too: a schedule can be tried out that way.
    fn tier_mut(&mut self, tier: Tier) -> &mut Tiered<V> {
        match tier {
            Tier::Memory => &mut self.memory,
            Tier::Disk => self.disk.get_or_insert_with(|| Tiered::new(Box::new(Memory::new()))),
        }
    }

    /// The step of the state that the schedule has put into `slot`.
    pub(crate) fn expected(&self, slot: Slot) -> Option<u64> {
        self.tier(slot.tier)?.expected.get(slot.index).copied().flatten()
    }

    pub(crate) fn occupied(&self, tier: Tier) -> usize {
        self.tier(tier).map_or(0, |tier| tier.occupied)
    }

    pub(crate) fn bytes(&self, tier: Tier) -> u64 {
        self.tier(tier).map_or(0, |tier| tier.place.bytes())
    }

    pub(crate) fn begin(&mut self, slot: Slot) -> Result<&mut V, Error> {
        self.lost.remove(&slot);
        let tier = self.tier_mut(slot.tier);
        tier.forget(slot.index);
        tier.place.begin(slot.index)
    }

    pub(crate) fn commit(&mut self, slot: Slot, step: u64) -> Result<(), Error> {
        let tier = self.tier_mut(slot.tier);
        tier.place.commit(slot.index, step)?;
        tier.expect(slot.index, step);
        Ok(())
    }

    pub(crate) fn load(&mut self, slot: Slot, step: u64) -> Result<&V, Error> {
        let place = &mut self.tier_mut(slot.tier).place;
        // A place that lost the state may hold another one by now.
        if place.step(slot.index) != Some(step) {
            return Err(Error::EmptySlot { slot: slot.index });
        }
        place.load(slot.index)
    }

    pub(crate) fn discard(&mut self, slot: Slot) -> Result<(), Error> {
        self.lost.remove(&slot);
        let tier = self.tier_mut(slot.tier);
        tier.place.discard(slot.index)?;
        tier.forget(slot.index);
        Ok(())
    }

    /// Takes the state of a slot that could not be read out of the choice. It is not removed: the next time it may be
    /// readable again, and whatever is durable stays so until the schedule drops it.
    pub(crate) fn mark_lost(&mut self, slot: Slot) {
        self.lost.insert(slot);
    }

    /// The stored state that is closest to `step` from below; memory before disk.
    pub(crate) fn closest(&self, step: u64) -> Option<(Slot, u64)> {
        [Tier::Disk, Tier::Memory]
            .into_iter()
            .filter_map(|tier| Some((tier, self.tier(tier)?)))
            .flat_map(|(tier, tiered)| {
                tiered.place.held().into_iter().map(move |(index, at)| (Slot { tier, index }, at))
            })
            .filter(|(slot, at)| *at <= step && !self.lost.contains(slot))
            .max_by_key(|&(_, at)| at)
    }

    /// Says that the state before `step` will be loaded from `slot` soon.
    pub(crate) fn prefetch(&mut self, slot: Slot, step: u64) {
        let place = &mut self.tier_mut(slot.tier).place;
        // If another state stands there now, the right one is still to be stored.
        if place.step(slot.index) == Some(step) {
            place.prefetch(slot.index);
        }
    }
}

impl<V> Tiered<V> {
    fn new(place: Box<dyn Place<V>>) -> Self {
        let mut tiered = Self { expected: Vec::new(), occupied: 0, place };
        for (index, step) in tiered.place.held() {
            tiered.expect(index, step);
        }
        tiered
    }

    fn expect(&mut self, index: usize, step: u64) {
        if index >= self.expected.len() {
            self.expected.resize(index + 1, None);
        }
        self.occupied += usize::from(self.expected[index].is_none());
        self.expected[index] = Some(step);
    }

    fn forget(&mut self, index: usize) {
        if let Some(step) = self.expected.get_mut(index) {
            self.occupied -= usize::from(step.take().is_some());
        }
    }
}
