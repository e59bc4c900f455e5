//! What to keep where a slot holds either a state or a tape, by dynamic programming.
//!
//! Maddison, *Step-based checkpointing with high-level algorithmic differentiation* (2024). The executions of
//! n units with s slots, the first state being at hand and in no slot:
//!
//! - M(n, s) = n if n ≤ s + 1 (tapes alone; the last one needs no slot);
//! - M(n, 1) = n(n + 1)/2 − 1;
//! - else M(n, s) = min(1 + M(n−1, s−1), min over 2 ≤ i < n of i + M(i, s) + M(n−i, s−1)): keep the tape of
//!   the first unit, or its state.
//!
//! M is not convex in n, so the minimum is a full scan: n²·s/2 additions, which is why the table has a limit.
//! Beyond it we split as Revolve does until the parts fit the table.

use crate::{Method, revolve};

/// The most additions that a table may cost.
const MOST_WORK: u64 = 5_000_000_000;

/// Units up to which a table is made, whatever the slots.
const MOST_UNITS: u64 = 16_384;

/// Units of the table for loops that are too long for an exact one.
const SHORT_TABLE: u64 = 1024;

/// What to do first with a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// Record the first unit; its tape takes a slot.
    Tape,
    /// Keep the state and advance over so many units.
    Advance(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MixedPlan {
    units: u64,
    /// By slots (from 2) and units: the units to advance over, 0 for a tape.
    splits: Vec<u16>,
}

impl MixedPlan {
    /// Whether the plan for so many units and slots can be exact.
    pub fn can_be_exact(units: u64, slots: u64) -> bool {
        units <= slots.saturating_add(1)
            || slots <= 1
            || (units <= MOST_UNITS && (units * units / 2).saturating_mul(slots) <= MOST_WORK)
    }

    /// A plan for up to `units` units and `slots` slots, fewer than the units.
    pub fn new(units: u64, slots: u64, method: Method) -> MixedPlan {
        if units <= slots.saturating_add(1) || slots <= 1 {
            return MixedPlan { units: 0, splits: Vec::new() };
        }
        if method == Method::Exact {
            return MixedPlan::table(units, slots);
        }
        MixedPlan::table(SHORT_TABLE.min(units), slots)
    }

    fn table(units: u64, slots: u64) -> MixedPlan {
        let n = units as usize;
        // With more slots than that everything is taped.
        let slots = slots.min(units.saturating_sub(2));
        // Costs stay below 2²⁴ where they matter, so that f32 holds them exactly and the scan is short.
        let mut fewer: Vec<f32> =
            (0..=n).map(|n| if n < 3 { n as f32 } else { (n * (n + 1) / 2 - 1) as f32 }).collect();
        let mut splits = Vec::with_capacity((n + 1) * slots.saturating_sub(1) as usize);
        for s in 2..=slots as usize {
            // In reverse, so that both operands of the scan run forward in memory.
            let reversed: Vec<f32> = fewer.iter().rev().copied().collect();
            let mut cost = vec![0.0_f32; n + 1];
            // i + M(i, s)
            let mut first: Vec<f32> = vec![0.0; n + 1];
            for units in 0..=n {
                let mut split = 0;
                cost[units] = if units <= s + 1 {
                    units as f32
                } else {
                    let rest = &reversed[n - units + 2..n];
                    let (best, at) = least_sum(&first[2..units], rest);
                    let taped = 1.0 + fewer[units - 1];
                    if best < taped {
                        split = at as u16 + 2;
                        best
                    } else {
                        taped
                    }
                };
                splits.push(split);
                first[units] = units as f32 + cost[units];
            }
            fewer = cost;
        }
        MixedPlan { units, splits }
    }

    /// What to do first with a gap of more than one unit and at least one slot.
    pub fn first(&self, units: u64, slots: u64) -> First {
        if units <= slots.saturating_add(1) {
            return First::Tape;
        }
        if slots <= 1 {
            return First::Advance(units - 1);
        }
        if units <= self.units {
            let split = self.splits[((slots - 2) * (self.units + 1) + units) as usize];
            return if split == 0 { First::Tape } else { First::Advance(split.into()) };
        }
        let split = revolve::split(units, usize::try_from(slots).unwrap_or(usize::MAX));
        First::Advance(split.unwrap_or(units - 1).max(2))
    }
}

/// The least of the sums of two sequences, and where it is.
fn least_sum(a: &[f32], b: &[f32]) -> (f32, usize) {
    let least = |a: &[f32], b: &[f32]| {
        a.iter().zip(b).fold(f32::INFINITY, |best, (x, y)| {
            let sum = x + y;
            if sum < best { sum } else { best }
        })
    };
    // In pieces, so that only one of them is searched for the place.
    let (mut best, mut place) = (f32::INFINITY, 0);
    for (piece, (x, y)) in a.chunks(256).zip(b.chunks(256)).enumerate() {
        let mut lanes = [f32::INFINITY; 8];
        let whole = x.len() / 8 * 8;
        for (x, y) in x[..whole].chunks_exact(8).zip(y[..whole].chunks_exact(8)) {
            for lane in 0..8 {
                let sum = x[lane] + y[lane];
                lanes[lane] = if sum < lanes[lane] { sum } else { lanes[lane] };
            }
        }
        let value = lanes.into_iter().fold(least(&x[whole..], &y[whole..]), f32::min);
        if value < best {
            (best, place) = (value, piece * 256);
        }
    }
    let at = a[place..].iter().zip(&b[place..]).position(|(x, y)| x + y == best).unwrap_or(0);
    (best, place + at)
}
