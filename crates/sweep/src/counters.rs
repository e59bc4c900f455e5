use ebbtide_schedule::Tier;

/// What a sweep has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Actions of the schedule that were carried out.
    pub actions: u64,
    /// Steps run forward without a tape.
    pub advanced: u64,
    /// Steps run forward with their tape kept.
    pub recorded: u64,
    /// Steps reversed.
    pub reversed: u64,
    /// What happened in memory.
    pub memory: TierCounters,
    /// What happened on disk.
    pub disk: TierCounters,
    /// The most bytes that the tape took, as the stepper counts them.
    pub peak_tape_bytes: u64,
    /// States that were lost or damaged and had to be computed again from an earlier one.
    pub repairs: u64,
}

/// What happened in one tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TierCounters {
    /// States stored.
    pub stores: u64,
    /// States loaded.
    pub loads: u64,
    /// The most slots that held a state at one time.
    pub peak_slots: usize,
    /// The most bytes that the states took at one time.
    pub peak_bytes: u64,
}

impl Counters {
    /// The counters of one tier.
    pub fn tier(&self, tier: Tier) -> &TierCounters {
        match tier {
            Tier::Memory => &self.memory,
            Tier::Disk => &self.disk,
        }
    }

    pub(crate) fn tier_mut(&mut self, tier: Tier) -> &mut TierCounters {
        match tier {
            Tier::Memory => &mut self.memory,
            Tier::Disk => &mut self.disk,
        }
    }
}
