use crate::Tier;

/// What moves between the state at hand and one tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// `Store` actions.
    pub stores: u128,
    /// `Load` actions.
    pub loads: u128,
    /// The most slots that are full at one time.
    pub peak_slots: u64,
}

/// What a whole schedule costs: counted by the [`Machine`](crate::Machine), or by formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// Plain forward steps, the first sweep included.
    pub advances: u128,
    /// Steps executed with their tape kept.
    pub records: u128,
    /// Steps reversed.
    pub reversals: u128,
    /// What goes to and from memory.
    pub memory: Traffic,
    /// What goes to and from disk.
    pub disk: Traffic,
    /// The most steps whose tape is live at one time.
    pub peak_tape: u64,
}

impl Totals {
    /// All forward executions of the loop's body: advances and records.
    pub fn executions(&self) -> u128 {
        self.advances + self.records
    }

    /// Forward executions per step: 1 means that nothing is recomputed.
    pub fn recompute_factor(&self) -> f64 {
        if self.reversals == 0 { 1.0 } else { self.executions() as f64 / self.reversals as f64 }
    }

    /// The traffic of one tier.
    pub fn tier(&self, tier: Tier) -> &Traffic {
        match tier {
            Tier::Memory => &self.memory,
            Tier::Disk => &self.disk,
        }
    }

    /// Adds what another part of the schedule costs, which comes before or after this one.
    pub(crate) fn add(&mut self, other: &Totals) {
        self.advances += other.advances;
        self.records += other.records;
        self.reversals += other.reversals;
        for tier in [Tier::Memory, Tier::Disk] {
            let (mine, more) = (self.tier_mut(tier), other.tier(tier));
            mine.stores += more.stores;
            mine.loads += more.loads;
            mine.peak_slots = mine.peak_slots.max(more.peak_slots);
        }
        self.peak_tape = self.peak_tape.max(other.peak_tape);
    }

    /// The cost of this number of equal parts, one after the other.
    pub(crate) fn times(mut self, times: u64) -> Totals {
        let times = u128::from(times);
        self.advances *= times;
        self.records *= times;
        self.reversals *= times;
        for tier in [Tier::Memory, Tier::Disk] {
            self.tier_mut(tier).stores *= times;
            self.tier_mut(tier).loads *= times;
        }
        self
    }

    pub(crate) fn tier_mut(&mut self, tier: Tier) -> &mut Traffic {
        match tier {
            Tier::Memory => &mut self.memory,
            Tier::Disk => &mut self.disk,
        }
    }

    /// The predicted time of the whole run.
    pub fn cost(&self, costs: &Costs) -> f64 {
        let at = |count: u128, cost: f64| if cost == 0.0 { 0.0 } else { count as f64 * cost };
        at(self.advances, costs.advance)
            + at(self.records, costs.record)
            + at(self.reversals, costs.reverse)
            + at(self.memory.stores, costs.store)
            + at(self.memory.loads, costs.load)
            + at(self.disk.stores, costs.disk_write)
            + at(self.disk.loads, costs.disk_read)
    }
}

/// What each action costs, in any one unit of time. By default an advance costs 1, a record 1, a reversal 2
/// and moving states nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// One plain forward step.
    pub advance: f64,
    /// One forward step with its tape kept.
    pub record: f64,
    /// The reversal of one step.
    pub reverse: f64,
    /// Keeping one state in memory.
    pub store: f64,
    /// Bringing one state back from memory.
    pub load: f64,
    /// Writing one state to disk.
    pub disk_write: f64,
    /// Reading one state from disk.
    pub disk_read: f64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            advance: 1.0,
            record: 1.0,
            reverse: 2.0,
            store: 0.0,
            load: 0.0,
            disk_write: 0.0,
            disk_read: 0.0,
        }
    }
}
