//! Which states go to disk: the choice among the ways to plan it.
//!
//! Input: the loop, the slots and the costs. Output: for each gap, whether its first state goes to disk and how far to
//! advance from there; and how good the plan is known to be.

use crate::disk_plan::{DiskPlan, Prices, REACH};
use crate::scarce_table::ScarceTable;
use crate::scarce_tree::ScarceTree;
use crate::{Method, revolve};

/// Up to this many slots on a disk that costs nothing are planned like those in memory, however long the loop is.
const MOST_FREE_SLOTS: usize = 1 << 14;

/// What there is to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    /// The steps, with a block more for a plain forward sweep.
    pub length: u64,
    pub memory_slots: usize,
    pub disk_slots: usize,
    pub block: u64,
    pub prices: Prices,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Placement {
    /// States are written on the first sweep alone: optimal where the disk has a slot for each of them.
    FirstSweep(DiskPlan),
    /// The disk costs nothing: Revolve with all slots, those on disk for the lower states.
    AsMemory(Room),
    Table(ScarceTable),
    Tree(ScarceTree),
}

impl Placement {
    /// The optimal placement, where it can be found in a bounded time.
    pub fn exact(room: Room) -> Option<Placement> {
        let free = room.prices == Prices { write: 0.0, read: 0.0 };
        if free && (room.length <= REACH || room.disk_slots <= MOST_FREE_SLOTS) {
            return Some(Placement::AsMemory(room));
        }
        if room.length > REACH {
            return None;
        }
        let first_sweep = DiskPlan::new(&room, Method::Exact);
        if first_sweep.slots_used(room.length) <= room.disk_slots as u64 {
            return Some(Placement::FirstSweep(first_sweep));
        }
        (ScarceTable::least_exact_grain(&room) == 1).then(|| Placement::Table(ScarceTable::new(&room, 1)))
    }

    /// A placement for a disk with too few slots that is close to the optimum where there are many gaps. `None` if it
    /// would take too large a table.
    pub fn tree(room: Room) -> Option<Placement> {
        ScarceTree::new(&room).map(Placement::Tree)
    }

    /// A placement for a disk with too few slots that is close to the optimum where there are few gaps.
    pub fn coarse_table(room: Room) -> Placement {
        Placement::Table(ScarceTable::new(&room, ScarceTable::least_coarse_grain(&room)))
    }

    /// What no plan for a length undercuts, but for records, where that is known.
    pub fn bound(&self, length: u64) -> Option<f64> {
        match self {
            Placement::FirstSweep(plan) => plan.bound(length),
            Placement::Tree(tree) => Some(tree.bound()),
            Placement::AsMemory(_) | Placement::Table(_) => None,
        }
    }

    /// How far to advance from a state that has just been written on the first sweep; `slots` are those on disk that
    /// were free before.
    pub fn first_advance(&self, length: u64, slots: usize) -> Option<u64> {
        match self {
            Placement::FirstSweep(plan) => plan.first_advance(length, slots),
            _ => self.advance(length, slots),
        }
    }

    /// How far to advance from a state on disk, whose slot is one of `slots`; `None` if it is better copied to
    /// memory.
    pub fn advance(&self, length: u64, slots: usize) -> Option<u64> {
        match self {
            Placement::FirstSweep(plan) => plan.next_advance(length),
            Placement::AsMemory(room) if room.as_good_in_memory(length, slots) => None,
            Placement::AsMemory(room) => {
                revolve::split_in_blocks(length, room.memory_slots.saturating_add(slots), room.block)
            }
            Placement::Table(table) => table.advance(length, slots),
            Placement::Tree(tree) => tree.advance(length, slots),
        }
    }

    /// Whether a state that is at hand alone, on the first sweep or on a later one, is worth one of the `slots` that
    /// are free on disk.
    pub fn writes(&self, length: u64, slots: usize, first_sweep: bool) -> bool {
        match self {
            _ if slots == 0 => false,
            Placement::FirstSweep(plan) => first_sweep && plan.first_advance(length, slots).is_some(),
            Placement::AsMemory(room) => !room.as_good_in_memory(length, slots),
            Placement::Table(table) => table.writes(length, slots),
            Placement::Tree(tree) => tree.writes(length, slots),
        }
    }
}

impl Room {
    /// Whether slots on disk save no step.
    fn as_good_in_memory(&self, length: u64, disk_slots: usize) -> bool {
        let advances = |slots| revolve::advances_in_blocks(length, slots, self.block);
        advances(self.memory_slots).is_some()
            && advances(self.memory_slots) == advances(self.memory_slots.saturating_add(disk_slots))
    }
}
