//! Where to put states on a disk with few slots, in a time that hardly grows with the length.
//!
//! Input and output are those of [`ScarceTable`](crate::scarce_table::ScarceTable), whose recurrences for R and F are
//! solved for their convex hulls alone. Fix a price λ that each reversed step earns. What a gap earns at best over
//! its cost, over all lengths, is the conjugate of its cost, and conjugates of sums are sums:
//!
//! - R*(λ, d) = max(M*(λ), R*(λ−1, d) + F*(λ, d−1) − r);
//! - F*(λ, d) = max(M*(λ), R*(λ, d) − w), F*(λ, 0) = M*(λ).
//!
//! The step from λ to λ−1 is the advance over the left part. One table of d × λ numbers thus holds the cheapest tree of
//! gaps for λ and its length, and λ·n − F*(λ, d) is a lower bound of the cost of any plan for n steps. We bisect λ
//! until n lies between the lengths of two neighbouring trees. They differ in one kind of gap, so a plan for n takes
//! some of these gaps from one tree and some from the other, and at most one gap in between is not on the hull.

use crate::binomial::beta;
use crate::placement::Room;
use crate::revolve;

/// The most entries of a tree.
const MOST_ENTRIES: u64 = 1 << 18;

/// The bisections of λ.
const HALVINGS: u32 = 48;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScarceTree {
    room: Room,
    /// The trees of neighbouring prices, between whose lengths that of the loop lies.
    shorter: Tree,
    longer: Tree,
    /// No plan has a lower cost.
    bound: f64,
}

/// The cheapest tree for one price.
#[derive(Clone, Debug, PartialEq)]
struct Tree {
    price: f64,
    /// The prices λ, λ−1, …, the last one negative.
    levels: usize,
    /// By free slots on disk and level.
    gaps: Vec<Best>,
}

/// The best gap for a price and a number of slots on disk: whose first state is on disk, and at hand alone.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Best {
    held_gain: f64,
    held_length: u64,
    splits: bool,
    gain: f64,
    length: u64,
    writes: bool,
}

impl Room {
    /// The best gap in memory alone.
    fn in_memory(&self, price: f64) -> Best {
        let block = self.block as f64;
        let (gain, length) = if price < 0.0 {
            (price, 1)
        } else if price < 1.0 || self.memory_slots == 0 {
            (price * block, self.block)
        } else {
            // M has the slope r from b·β(s, r−1) to b·β(s, r).
            let (rank, slots) = (price as u64, self.memory_slots as u64);
            let units = beta(slots, rank);
            let gain = (price - rank as f64) * units as f64 + beta(slots.saturating_add(1), rank - 1) as f64;
            let length = units.saturating_mul(self.block.into());
            (gain * block, u64::try_from(length).unwrap_or(u64::MAX))
        };
        Best { held_gain: gain, held_length: length, splits: false, gain, length, writes: false }
    }

    /// The best tree for a price; `None` if it is too large.
    fn tree(&self, price: f64) -> Option<Tree> {
        let levels = price as u64 + 2;
        let entries = (self.disk_slots as u64).checked_add(1)?.checked_mul(levels)?;
        if entries > MOST_ENTRIES {
            return None;
        }
        let levels = levels as usize;
        let mut gaps: Vec<Best> = (0..levels).map(|level| self.in_memory(price - level as f64)).collect();
        gaps.reserve(self.disk_slots * levels);
        for slots in 1..=self.disk_slots {
            gaps.extend_from_within(..levels);
            let (fewer, these) = gaps[(slots - 1) * levels..].split_at_mut(levels);
            for level in (0..levels - 1).rev() {
                let (left, right) = (these[level + 1], fewer[level]);
                let best = &mut these[level];
                let gain = left.held_gain + right.gain - self.prices.read;
                if gain > best.held_gain {
                    best.splits = true;
                    best.held_gain = gain;
                    best.held_length = left.held_length.saturating_add(right.length);
                }
                if best.held_gain - self.prices.write > best.gain {
                    best.writes = true;
                    best.gain = best.held_gain - self.prices.write;
                    best.length = best.held_length;
                }
            }
        }
        Some(Tree { price, levels, gaps })
    }

    fn memory_cost(&self, length: u64) -> f64 {
        revolve::advances_in_blocks(length, self.memory_slots, self.block).map_or(f64::INFINITY, |t| t as f64)
    }
}

impl Tree {
    fn best(&self, slots: usize, level: usize) -> Option<&Best> {
        self.gaps.get(slots * self.levels..(slots + 1) * self.levels)?.get(level)
    }

    fn whole(&self) -> &Best {
        &self.gaps[self.gaps.len() - self.levels]
    }

    /// What no plan for `length` steps undercuts.
    fn bound(&self, length: u64) -> f64 {
        self.price * length as f64 - self.whole().gain
    }
}

impl ScarceTree {
    /// A plan for a room; `None` if the tables would be too large.
    pub fn new(room: &Room) -> Option<ScarceTree> {
        let (mut low, mut high) = (0.5, 1.5);
        let mut shorter = room.tree(low)?;
        let mut longer = room.tree(high)?;
        while longer.whole().length < room.length {
            (low, shorter) = (high, longer);
            high = 2.0 * high + 0.1;
            longer = room.tree(high)?;
        }
        for _ in 0..HALVINGS {
            let middle = low + (high - low) / 2.0;
            if !(low < middle && middle < high) {
                break;
            }
            let tree = room.tree(middle)?;
            if tree.whole().length < room.length {
                (low, shorter) = (middle, tree);
            } else {
                (high, longer) = (middle, tree);
            }
        }
        let bound = shorter.bound(room.length).max(longer.bound(room.length));
        Some(ScarceTree { room: *room, shorter, longer, bound })
    }

    /// A lower bound of the cost of any plan.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// The level of the gap that is nearest to a length, as `length_of` says it, and that gap in both trees.
    fn find(&self, length: u64, slots: usize, length_of: fn(&Best) -> u64) -> Option<(usize, Best, Best)> {
        let levels = self.shorter.levels;
        let row = self.shorter.gaps.get(slots * levels..(slots + 1) * levels)?;
        // Lower prices have shorter gaps.
        let level = row.partition_point(|best| length_of(best) > length).min(levels - 1);
        Some((level, row[level], *self.longer.best(slots, level)?))
    }

    /// Whether a gap is better done in memory, where the trees do not agree on that: at the price between theirs both
    /// ways are on the hull, each for the lengths of an interval. Between the intervals another use of the disk must
    /// pay for itself.
    fn in_memory(&self, length: u64, level: usize, on_disk: [u64; 2], gain: f64, price_of_use: f64) -> bool {
        let prices = [self.shorter.price - level as f64, self.longer.price - level as f64];
        let [shortest, longest] = prices.map(|price| self.room.in_memory(price).length);
        if (shortest..=longest).contains(&length) {
            return true;
        }
        if (on_disk[0]..=on_disk[1]).contains(&length) {
            return false;
        }
        let hull = prices[0] * length as f64 - gain;
        self.room.memory_cost(length) - hull <= price_of_use
    }

    /// How far to advance from a state on disk, whose slot is one of `slots`; `None` if memory alone is better.
    pub fn advance(&self, length: u64, slots: usize) -> Option<u64> {
        let (level, shorter, longer) = self.find(length, slots, |best| best.held_length)?;
        let left = |tree: &Tree| tree.best(slots, level + 1).map_or(1, |best| best.held_length);
        let right = |tree: &Tree| tree.best(slots - 1, level).map_or(self.room.block, |best| best.length);
        let [least, most] = [&self.shorter, &self.longer].map(|tree| left(tree).saturating_add(right(tree)));
        let in_memory = match (shorter.splits, longer.splits) {
            (true, true) => false,
            (false, false) => length <= longer.held_length,
            _ => self.in_memory(length, level, [least, most], shorter.held_gain, self.room.prices.read),
        };
        let most = length.checked_sub(self.room.block).filter(|&most| most > 0 && !in_memory)?;
        // One of the two parts is as long as in one of the trees.
        let rest = length.saturating_sub(right(&self.shorter));
        Some(left(&self.longer).min(rest).max(left(&self.shorter)).clamp(1, most))
    }

    /// Whether a state that is at hand alone is worth one of the `slots` that are free on disk.
    pub fn writes(&self, length: u64, slots: usize) -> bool {
        let Some((level, shorter, longer)) = self.find(length, slots, |best| best.length) else {
            return false;
        };
        let in_memory = match (shorter.writes, longer.writes) {
            (true, true) => false,
            (false, false) => length <= longer.length,
            _ => {
                let on_disk = [shorter.held_length, longer.held_length];
                let price = self.room.prices.read + self.room.prices.write;
                self.in_memory(length, level, on_disk, shorter.gain, price)
            }
        };
        !in_memory && self.advance(length, slots).is_some()
    }
}
