//! Reversal of a loop whose length is known only when it ends.
//!
//! Every state that the loop comes to is a candidate. Where no slot is free, that state is given up (the
//! candidate perhaps) without which the way back would be cheapest if the loop ended one block later, each
//! gap being split as Revolve does; of equals the latest. The field's usual choice, the minimal repetition
//! of Wang, Moin & Iaccarino (SIAM J. Sci. Comput. 31, 2009), bounds how often a step is repeated, but not how
//! many are: we found it up to 28 % above the optimum for the length that comes out.
//! This choice is not optimal either, since no choice is without knowing the length: up to 5 % above for five
//! slots or more, 7 % for three, 12 % for two (the tests say where).

use std::fmt;

use crate::pool::Pool;
use crate::retreat::{Held, Phase, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, MAX_STEPS, Options, Schedule, Slot, Tier, revolve};

/// Reverses a loop of unknown length with at most `slots` stored states, the initial one included.
///
/// The driver and the schedule talk like this:
///
/// 1. The schedule yields `Store`, `Drop` and `Advance` actions, without end. Each `Advance` is one block long.
/// 2. When the loop ends before step `n`, in the middle of an `Advance { from, to }` or at either end of it
///    (`from <= n <= to`), the driver calls [`end(n)`](Schedule::end) before it takes another action. A
///    loop that ends at once needs no action: `end(0)`.
/// 3. From then on the schedule yields `Turn` and the way back, and knows its number of steps.
///
/// The shape is always [`PrimalFirst`](crate::Shape::PrimalFirst): no schedule can record the last block of a
/// loop that does not say where its end is.
///
/// ```
/// use ebbtide_schedule::{Action, Online, Schedule};
///
/// let mut schedule = Online::new(2)?;
/// let mut position = 0;
/// while position < 5 {
///     if let Some(Action::Advance { to, .. }) = schedule.next() {
///         position = to;
///     }
/// }
/// schedule.end(5)?;
/// assert_eq!(schedule.next(), Some(Action::Turn));
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Online {
    way: Way,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    Forward(Forward),
    Back { steps: u64, retreat: Retreat },
}

/// The forward sweep: where it is and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Forward {
    options: Options,
    at: u64,
    pool: Pool,
    held: Vec<Placed>,
}

/// A state on the way forward, and what the gap above it costs on the way back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Placed {
    step: u64,
    /// `None` while it waits for the slot that was dropped for it.
    index: Option<usize>,
    /// The advances in the gap above it.
    kept: u128,
    /// The same if a state below is given up, so that there is one more slot.
    lowered: u128,
    /// The advances between its neighbours if it is given up itself.
    given_up: u128,
}

impl Online {
    /// Blocks of one step.
    pub fn new(slots: usize) -> Result<Online, Error> {
        Online::with(slots, Options::new())
    }

    /// With a block size: states are kept only at multiples of the block. The shape is ignored.
    pub fn with(slots: usize, options: Options) -> Result<Online, Error> {
        if slots == 0 {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        let options = options.primal_first().check(MAX_STEPS)?;
        let forward = Forward { options, at: 0, pool: Pool::new(slots), held: Vec::new() };
        Ok(Online { way: Way::Forward(forward) })
    }

    /// How many states it keeps at most.
    pub fn slots(&self) -> usize {
        match &self.way {
            Way::Forward(forward) => forward.pool.limit(),
            Way::Back { retreat, .. } => retreat.slots(),
        }
    }

    /// The steps of a block.
    pub fn block(&self) -> u64 {
        match &self.way {
            Way::Forward(forward) => forward.options.block,
            Way::Back { retreat, .. } => retreat.options().block,
        }
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        match &self.way {
            Way::Forward(forward) => {
                out.field("way", "forward")?;
                out.field("block", forward.options.block)?;
                forward.pool.write(out)?;
                out.field("at", forward.at)?;
                out.list("held", &forward.held)
            }
            Way::Back { steps, retreat } => {
                out.field("way", "back")?;
                out.field("steps", steps)?;
                retreat.write(out)
            }
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Online, Error> {
        let way = match fields.text("way")? {
            "forward" => Way::Forward(Forward::read(fields)?),
            "back" => {
                let steps = fields.number("steps")?;
                Way::Back { steps, retreat: Retreat::read(fields, steps)? }
            }
            _ => return Err(bad("the way is neither forward nor back")),
        };
        Ok(Online { way })
    }
}

impl Forward {
    fn next_action(&mut self) -> Option<Action> {
        let step = self.at;
        if self.held.last().is_none_or(|last| last.step < step) {
            self.held.push(Placed { step, ..Placed::default() });
            self.weigh(self.held.len().saturating_sub(2));
            if self.pool.free() == 0
                && let Some(slot) = self.make_room()
            {
                return Some(Action::Drop { slot });
            }
        }
        if let Some(last) = self.held.last_mut()
            && last.index.is_none()
            && let Some(index) = self.pool.take()
        {
            last.index = Some(index);
            return Some(Action::Store { step, slot: memory(index) });
        }
        let to = step.checked_add(self.options.block).filter(|&to| to <= MAX_STEPS)?;
        self.at = to;
        Some(Action::Advance { from: step, to })
    }

    /// Gives up the state that costs least, and returns its slot if it has one. The initial state always
    /// stays; the candidate, which is last, has no slot yet.
    fn make_room(&mut self) -> Option<Slot> {
        // What stays as it is below the one given up, and what gains a slot above it.
        let (mut below, mut above) = (0, self.held.iter().skip(1).map(|held| held.lowered).sum::<u128>());
        let (mut best, mut victim) = (u128::MAX, 0);
        for i in 1..self.held.len() {
            above -= self.held[i].lowered;
            let cost = below + self.held[i].given_up + above;
            if cost <= best {
                (best, victim) = (cost, i);
            }
            below += self.held[i - 1].kept;
        }
        if victim == 0 {
            return None;
        }
        let index = self.held.remove(victim).index?;
        self.weigh(victim - 1);
        self.pool.give_back(index);
        Some(memory(index))
    }

    /// Brings the costs of the states from number `first` on up to date.
    fn weigh(&mut self, first: usize) {
        let (block, slots) = (self.options.block, self.pool.limit());
        let horizon = self.at.saturating_add(block);
        // The candidate may stand where there is no slot for it: then it is the one to give up.
        let cost = |length: u64, taken: usize| {
            revolve::advances_in_blocks(length, slots.saturating_sub(taken), block).unwrap_or(0)
        };
        for i in first..self.held.len() {
            let step = self.held[i].step;
            let next = self.held.get(i + 1).map_or(horizon, |next| next.step);
            let kept = cost(next - step, i);
            let (lowered, given_up) = match i.checked_sub(1) {
                Some(below) => (cost(next - step, below), cost(next - self.held[below].step, below)),
                None => (kept, kept),
            };
            self.held[i] = Placed { kept, lowered, given_up, ..self.held[i] };
        }
    }

    fn end(&self, steps: u64) -> Result<Retreat, Error> {
        // The loop ended during the last advance, but not before a state that was kept since.
        let kept = self.held.last().map_or(0, |last| last.step);
        let first = kept.max(self.at.saturating_sub(self.options.block));
        if !(first..=self.at).contains(&steps) {
            return Err(Error::WrongEnd { announced: steps, first, last: self.at });
        }
        let stored = |placed: &Placed| Some(Held { step: placed.step, slot: memory(placed.index?) });
        let held = self.held.iter().filter_map(stored);
        let options = self.options.check(steps)?;
        Ok(Retreat::resume(steps, Turn::Ahead, Phase::At(steps), held.collect(), self.pool.clone(), options))
    }

    fn read(fields: &mut Fields<'_>) -> Result<Forward, Error> {
        let options = Options::new().block(fields.number("block")?).primal_first().check(MAX_STEPS)?;
        let pool = Pool::read(fields)?;
        let at: u64 = fields.number("at")?;
        let held = fields.list("held", Placed::read)?;
        pool.check(held.iter().filter_map(|placed| placed.index).collect())?;
        let waiting = held.iter().position(|placed| placed.index.is_none());
        let sound = at <= MAX_STEPS
            && pool.limit() > 0
            && held.is_sorted_by(|a, b| a.step < b.step)
            && held.last().map_or(at == 0, |last| last.step <= at)
            && held.first().is_none_or(|first| first.step == 0)
            && waiting.is_none_or(|i| i > 0 && i + 1 == held.len() && held[i].step == at && pool.free() > 0);
        if !sound {
            return Err(bad("the positions contradict each other"));
        }
        let mut forward = Forward { options, at, pool, held };
        forward.weigh(0);
        Ok(forward)
    }
}

impl Placed {
    fn read(text: &str) -> Result<Placed, Error> {
        let (step, index) = text.split_once('@').ok_or_else(|| bad("a held state has no slot"))?;
        let index = if index == "?" { None } else { Some(number(index, "held")?) };
        Ok(Placed { step: number(step, "held")?, index, ..Placed::default() })
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}@{index}", self.step),
            None => write!(f, "{}@?", self.step),
        }
    }
}

fn memory(index: usize) -> Slot {
    Slot { tier: Tier::Memory, index }
}

impl Iterator for Online {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        match &mut self.way {
            Way::Forward(forward) => forward.next_action(),
            Way::Back { retreat, .. } => retreat.next_action(|gap| gap.revolve()),
        }
    }
}

impl Schedule for Online {
    fn steps(&self) -> Option<u64> {
        match self.way {
            Way::Forward(_) => None,
            Way::Back { steps, .. } => Some(steps),
        }
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        match &self.way {
            Way::Forward(forward) => self.way = Way::Back { steps, retreat: forward.end(steps)? },
            Way::Back { steps: known, .. } => same_end(*known, steps)?,
        }
        Ok(())
    }
}
