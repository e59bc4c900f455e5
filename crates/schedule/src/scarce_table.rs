//! Where to put states on a disk with few slots, by dynamic programming.
//!
//! Input: a length, the slots in memory and on disk, what a write and a read cost. Output: for each length and number
//! of free slots on disk, whether to write the state at hand, and how far to advance from a state on disk.
//!
//! Herrmann & Pallez, *H-Revolve: a framework for adjoint computation on synchronous hierarchical platforms* (ACM
//! TOMS 46, 2020), for two tiers. With M(l) the advances of Revolve in memory alone, w and r the costs of a write and a
//! read (in advances), d the slots on disk:
//!
//! - R(l, d) = min(M(l), min over m of m + F(l−m, d−1) + r + R(m, d)): the first state is on disk, in one of the d
//!   slots, and at hand;
//! - F(l, d) = min(M(l), w + R(l, d)), F(l, 0) = M(l): the first state is at hand alone.
//!
//! States are written on every sweep, not on the first one alone. A search over all plans finds none that is cheaper
//! (tests, up to 9 steps).
//!
//! Departures: blocks (M counts them), and a *grain*: with a grain g the states on disk stand before every g-th step
//! only, which makes the table g² times cheaper and is no longer exact.

use crate::placement::Room;
use crate::revolve;

/// The additions that a table may take: about a second.
const MOST_WORK: u64 = 1 << 29;

/// Set in an entry if a state that is at hand alone is worth a write.
const WRITE: u16 = 1 << 15;

/// The most grains of a table: an entry is 15 bits wide.
const MOST_GRAINS: u64 = WRITE as u64 - 1;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScarceTable {
    grain: u64,
    /// By free slots on disk, from 1, and length in grains: the first advance in grains, 0 for memory alone, and
    /// [`WRITE`].
    layers: Vec<Vec<u16>>,
}

impl ScarceTable {
    /// The least grain for which an exact table takes a bounded time: 1 if there is one.
    pub fn least_exact_grain(room: &Room) -> u64 {
        least_grain(room, MOST_WORK)
    }

    /// The least grain for which a table is made at once.
    pub fn least_coarse_grain(room: &Room) -> u64 {
        least_grain(room, MOST_WORK >> 4)
    }

    /// A table for a room and all that are smaller.
    pub fn new(room: &Room, grain: u64) -> ScarceTable {
        let grains = room.length.div_ceil(grain) as usize;
        let alone = |l: u64| revolve::advances_in_blocks(l * grain, room.memory_slots, room.block);
        let memory: Vec<f64> =
            (0..=grains as u64).map(|l| alone(l).map_or(f64::INFINITY, |t| t as f64)).collect();
        let mut first = memory.clone();
        let mut layers = Vec::new();
        for _ in 0..room.disk_slots.min(grains) {
            let (costs, layer) = next_layer(room, grain, &memory, &first);
            layers.push(layer);
            first = costs;
        }
        ScarceTable { grain, layers }
    }

    fn entry(&self, length: u64, slots: usize) -> u16 {
        let Some(layer) = slots.min(self.layers.len()).checked_sub(1).and_then(|i| self.layers.get(i)) else {
            return 0;
        };
        usize::try_from(length.div_ceil(self.grain)).ok().and_then(|l| layer.get(l)).copied().unwrap_or(0)
    }

    /// How far to advance from a state on disk, whose slot is one of `slots`; `None` if memory alone is better.
    pub fn advance(&self, length: u64, slots: usize) -> Option<u64> {
        match self.entry(length, slots) & !WRITE {
            0 => None,
            grains => Some(u64::from(grains) * self.grain),
        }
    }

    /// Whether a state that is at hand alone is worth one of the `slots` that are free on disk.
    pub fn writes(&self, length: u64, slots: usize) -> bool {
        self.entry(length, slots) & WRITE != 0
    }
}

/// The least grain for which a table takes at most `most_work` additions.
fn least_grain(room: &Room, most_work: u64) -> u64 {
    let fits = |grain: u64| {
        let grains = room.length.div_ceil(grain);
        let work = u128::from(grains) * u128::from(grains) / 2 * (room.disk_slots as u128).min(grains.into());
        grains <= MOST_GRAINS && work <= most_work.into()
    };
    // The least grain that fits lies between a power of two that does not and the next one.
    let mut high = 1_u64;
    while !fits(high) {
        high = high.saturating_mul(2);
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    high
}

/// F(·, d) and the entries for d slots, from M and F(·, d−1).
fn next_layer(room: &Room, grain: u64, memory: &[f64], fewer: &[f64]) -> (Vec<f64>, Vec<u16>) {
    // What comes after the right part: a read, the advance over the left part, and that part.
    let mut left: Vec<f64> = Vec::with_capacity(memory.len());
    let (mut first, mut layer) = (Vec::with_capacity(memory.len()), Vec::with_capacity(memory.len()));
    for (l, &alone) in memory.iter().enumerate() {
        let (mut best, mut split) = (alone, 0);
        if l as u64 * grain > room.block {
            for (m, (left, right)) in left.iter().zip(fewer[..=l].iter().rev()).enumerate().skip(1) {
                let cost = left + right;
                if cost < best {
                    (best, split) = (cost, m as u16);
                }
            }
        }
        left.push(best + room.prices.read + (l as u64 * grain) as f64);
        let written = room.prices.write + best;
        let worth = written < alone;
        layer.push(if worth { split | WRITE } else { split });
        first.push(if worth { written } else { alone });
    }
    (first, layer)
}
