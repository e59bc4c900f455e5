//! Revolve: the least recomputation for a known number of steps and a given number of slots.
//!
//! Griewank & Walther, *Algorithm 799: revolve* (ACM TOMS 26, 2000). With β(s, r) = C(s + r, s) and r the
//! least number with β(s, r) ≥ n, the minimum number of plain advances is `r·n − C(s + r, s + 1)`.
//!
//! Blocks carry over exactly, at the grain of single steps: where up to b steps are recorded and reversed
//! at once, every optimal first advance lies between
//! `max(b·β(s, r−2), n − b·β(s−1, r), 1)` and `min(b·β(s, r−1), n − b·β(s−1, r−1), n−1)`,
//! r is the least number with b·β(s, r) ≥ n, and the minimum is `r·n − b·C(s + r, s + 1)`.
//!
//! Among all of these, the schedule takes an advance with the fewest stores. The number of stores as a function of the
//! number of blocks is constant from β(s, r−1) to γ(s, r) = β(s, r) − β(s−2, r), at β(s−1, r−1), and then rises by one
//! with each block to β(s, r). Since γ(s, r) = γ(s, r−1) + γ(s−1, r), the fewest stores are those of the advance
//! `min(b·β(s, r−1), n − b·β(s−1, r−1), max(b·γ(s, r−1), n − b·γ(s−1, r)))`: both parts stay where the function is
//! constant as long as they can. This is ours, held against dynamic programming in tests.
//!
//! One of the two parts is then always a whole number of blocks, so that there are ⌈n/b⌉ blocks of which one is short,
//! and all totals have closed forms.
//!
//! A plain forward sweep of n steps costs as many advances as n + b steps whose last block is recorded
//! on the way: the last block of those is never advanced over.

use crate::binomial::{Rank, beta, rank};
use crate::retreat::Retreat;
use crate::schedule::same_end;
use crate::text::{Fields, Writer};
use crate::{Action, Error, MAX_STEPS, Options, Schedule, Totals, Traffic};

/// The optimal first advance for `steps` steps and `slots` slots (the initial state included): the upper
/// end of the interval of all optimal ones. `None` if there is nothing to split (at most one step) or no slot.
///
/// ```
/// use ebbtide_schedule::revolve;
///
/// assert_eq!(revolve::split(10, 3), Some(4));
/// assert_eq!(revolve::split(1, 3), None);
/// ```
pub fn split(steps: u64, slots: usize) -> Option<u64> {
    split_in_blocks(steps, slots, 1)
}

/// The optimal first advance where up to `block` steps are recorded at once.
pub fn split_in_blocks(steps: u64, slots: usize, block: u64) -> Option<u64> {
    if steps <= block || slots == 0 || block == 0 || steps > 2 * MAX_STEPS {
        return None;
    }
    let (slots, block) = (clamp(slots, steps), u128::from(block));
    let rank = rank(steps, slots, block as u64);
    // β(s−1, r−1) = β(s, r−1) · s / (s + r − 1), without a remainder.
    let right = rank.below * u128::from(slots) / (u128::from(slots) + u128::from(rank.repetitions) - 1);
    let upper = (block * rank.below).min(u128::from(steps) - block * right);
    Some(upper as u64)
}

/// The optimal first advance with the fewest stores where up to `block` steps are recorded at once: the largest one of
/// these. `None` if there is nothing to split or no slot.
///
/// ```
/// use ebbtide_schedule::revolve;
///
/// assert_eq!(revolve::split_with_fewest_stores(9, 4, 1), Some(2)); // 4 stores; 5 with an advance of 5 steps
/// assert_eq!(revolve::split_in_blocks(9, 4, 1), Some(5));
/// ```
pub fn split_with_fewest_stores(steps: u64, slots: usize, block: u64) -> Option<u64> {
    let largest = split_in_blocks(steps, slots, block)?;
    let slots = clamp(slots, steps);
    let rank = rank(steps, slots, block);
    if slots == 1 || rank.repetitions == 1 {
        return Some(largest);
    }
    let block = u128::from(block);
    let left = block.saturating_mul(constant_up_to(slots, rank.repetitions - 1));
    let right = block.saturating_mul(constant_up_to(slots - 1, rank.repetitions));
    let thrifty = left.max(u128::from(steps).saturating_sub(right));
    Some(u64::try_from(thrifty).map_or(largest, |thrifty| thrifty.min(largest)))
}

/// γ(s, r) = β(s, r) − β(s−2, r): from β(s, r−1) to this many blocks the number of stores is the same.
fn constant_up_to(slots: u64, repetitions: u64) -> u128 {
    match slots {
        0 | 1 => beta(slots, repetitions),
        // β(s, r) = β(s, r−1) + β(s−1, r−1) + β(s−2, r), whose first two terms are small enough to be exact.
        _ => beta(slots - 1, repetitions - 1).saturating_add(beta(slots, repetitions - 1)),
    }
}

/// The least number of plain advances for `steps` steps and `slots` slots (the initial state included):
/// steps executed without being recorded, the first sweep included. `None` if it cannot be done.
///
/// ```
/// use ebbtide_schedule::revolve;
///
/// assert_eq!(revolve::advances(10, 3), Some(15));
/// assert_eq!(revolve::advances(1_000_000_000, 50), Some(7_699_325_912));
/// assert_eq!(revolve::advances(2, 0), None);
/// ```
pub fn advances(steps: u64, slots: usize) -> Option<u128> {
    advances_in_blocks(steps, slots, 1)
}

/// The least number of plain advances where up to `block` steps are recorded at once.
pub fn advances_in_blocks(steps: u64, slots: usize, block: u64) -> Option<u128> {
    if steps <= block {
        return Some(0);
    }
    if slots == 0 || block == 0 || steps > 2 * MAX_STEPS {
        return None;
    }
    let slots = clamp(slots, steps);
    let rank = rank(steps, slots, block);
    let (s, r) = (u128::from(slots), u128::from(rank.repetitions));
    // C(s + r, s + 1) = β(s, r−1) · (s + r) / (s + 1), without a remainder.
    Some(r * u128::from(steps) - u128::from(block) * (rank.below * (s + r) / (s + 1)))
}

/// More slots than steps are no better than as many as steps.
fn clamp(slots: usize, steps: u64) -> u64 {
    (slots as u64).min(steps)
}

/// The number of `Store` actions for `steps` steps: one for each state that is advanced from.
fn stores_in_blocks(steps: u64, slots: usize, block: u64) -> u128 {
    if steps <= block {
        return 0;
    }
    let slots = clamp(slots, steps);
    if slots <= 1 {
        return 1;
    }
    let Rank { repetitions, .. } = rank(steps, slots, block);
    let blocks = u128::from(steps.div_ceil(block));
    beta(slots - 1, repetitions - 1) + blocks.saturating_sub(constant_up_to(slots, repetitions))
}

/// All totals of a Revolve schedule, by formula. `None` if there are too few slots.
pub(crate) fn totals(steps: u64, slots: usize, options: Options) -> Option<Totals> {
    let (block, virtual_steps) = (options.block, options.virtual_steps(steps));
    let blocks = virtual_steps.div_ceil(block);
    let peak_slots = match blocks {
        0 | 1 => 0,
        _ => (slots as u64).min(blocks - 1),
    };
    Some(Totals {
        advances: advances_in_blocks(virtual_steps, slots, block)?,
        records: steps.into(),
        reversals: steps.into(),
        memory: Traffic {
            stores: stores_in_blocks(virtual_steps, slots, block),
            loads: blocks.saturating_sub(1).into(),
            peak_slots,
        },
        disk: Traffic::default(),
        peak_tape: block.min(steps),
    })
}

/// Reverses `steps` steps with at most `slots` stored states, the initial one included.
///
/// Optimal in the number of plain advances, and among those schedules in the number of stores (see [the
/// module](crate::revolve)), for every block and both shapes. It streams: the first action comes at once and the memory is that of the states it holds.
///
/// ```
/// use ebbtide_schedule::{Action, Revolve};
///
/// let actions: Vec<String> = Revolve::new(3, 1)?.map(|action| action.to_string()).collect();
/// assert_eq!(actions[..3], ["store 0 in memory[0]", "advance 0..2", "record 2..3"]);
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revolve {
    steps: u64,
    retreat: Retreat,
}

impl Revolve {
    /// Blocks of one step, the last one recorded on the way.
    pub fn new(steps: u64, slots: usize) -> Result<Revolve, Error> {
        Revolve::with(steps, slots, Options::new())
    }

    /// With a block size and a shape.
    pub fn with(steps: u64, slots: usize, options: Options) -> Result<Revolve, Error> {
        let options = options.check(steps)?;
        if slots == 0 && options.virtual_steps(steps) > options.block {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        Ok(Revolve { steps, retreat: Retreat::forward(steps, slots, options) })
    }

    /// What the whole schedule costs, by formula.
    pub fn totals(&self) -> Totals {
        totals(self.steps, self.retreat.slots(), self.retreat.options())
            .expect("the constructor has checked that there are enough slots")
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        out.field("steps", self.steps)?;
        self.retreat.write(out)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Revolve, Error> {
        let steps = fields.number("steps")?;
        Ok(Revolve { steps, retreat: Retreat::read(fields, steps)? })
    }
}

impl Iterator for Revolve {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        self.retreat.next_action(|gap| gap.revolve())
    }
}

impl Schedule for Revolve {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}
