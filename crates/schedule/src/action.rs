use std::fmt;

/// Where a slot lives. Tiers are ordered from fast and scarce to slow and plentiful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The memory that the budget counts.
    Memory,
    /// A disk, or anything else that costs time to write and to read.
    Disk,
}

/// One place for one state: a tier and an index within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The tier that holds the slot.
    pub tier: Tier,
    /// The index of the slot within its tier, counted from zero.
    pub index: usize,
}

/// One instruction of a schedule to the thing that steps. Ranges are half open: `from..to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Run steps `from..to` forward and keep nothing.
    Advance {
        /// The first step to run.
        from: u64,
        /// The step after the last one.
        to: u64,
    },
    /// Keep the state before `step` in `slot`.
    Store {
        /// The step that the state stands before.
        step: u64,
        /// Where to keep it.
        slot: Slot,
    },
    /// Bring back the state before `step` from `slot`; the slot keeps it.
    Load {
        /// The step that the state stands before.
        step: u64,
        /// Where it was kept.
        slot: Slot,
    },
    /// The state in `slot` is not needed any more.
    Drop {
        /// The slot that becomes free.
        slot: Slot,
    },
    /// Run steps `from..to` forward and keep their tape.
    Record {
        /// The first step to run.
        from: u64,
        /// The step after the last one.
        to: u64,
    },
    /// Consume the tape of steps `from..to`, last step first.
    Reverse {
        /// The first step of the range (reversed last).
        from: u64,
        /// The step after the last one.
        to: u64,
    },
    /// The forward sweep is over: the result of the run is known and its cotangent may be set.
    Turn,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::Memory => "memory",
            Tier::Disk => "disk",
        })
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.tier, self.index)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Action::Advance { from, to } => write!(f, "advance {from}..{to}"),
            Action::Store { step, slot } => write!(f, "store {step} in {slot}"),
            Action::Load { step, slot } => write!(f, "load {step} from {slot}"),
            Action::Drop { slot } => write!(f, "drop {slot}"),
            Action::Record { from, to } => write!(f, "record {from}..{to}"),
            Action::Reverse { from, to } => write!(f, "reverse {from}..{to}"),
            Action::Turn => f.write_str("turn"),
        }
    }
}
