//! Reversal of a loop whose length is known only when it ends.
//!
//! Wang, Moin & Iaccarino, *Minimal repetition dynamic checkpointing algorithm for unsteady adjoint
//! calculation* (SIAM J. Sci. Comput. 31, 2009), for the placement on the way forward. We depart from it on
//! the way back, where every gap is split as Revolve does. Not optimal: nobody can be without knowing the
//! length. The loss against the optimum for the length that comes out is a few per cent.

use crate::pool::Pool;
use crate::retreat::{Held, Phase, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, MAX_STEPS, Options, Schedule, Slot, Tier};

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
/// The shape is always [`PrimalFirst`](crate::Shape::PrimalFirst): nobody can record the last block of a
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
    /// The level of the next state to be stored.
    level: u64,
}

/// A state on the way forward. It is dispensable if a later one has a higher level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    step: u64,
    index: usize,
    level: u64,
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
        let forward = Forward { options, at: 0, pool: Pool::new(slots), held: Vec::new(), level: 0 };
        Ok(Online { way: Way::Forward(forward) })
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        match &self.way {
            Way::Forward(forward) => {
                out.field("way", "forward")?;
                out.field("block", forward.options.block)?;
                forward.pool.write(out)?;
                out.field("at", forward.at)?;
                out.field("level", forward.level)?;
                let held = forward.held.iter();
                out.list("held", held.map(|p| format!("{}@{}^{}", p.step, p.index, p.level)))
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
            if let Some(index) = self.pool.take() {
                let level = std::mem::take(&mut self.level);
                self.held.push(Placed { step, index, level });
                return Some(Action::Store { step, slot: Slot { tier: Tier::Memory, index } });
            }
            if let Some(slot) = self.make_room() {
                return Some(Action::Drop { slot });
            }
        }
        let to = step.checked_add(self.options.block).filter(|&to| to <= MAX_STEPS)?;
        self.at = to;
        Some(Action::Advance { from: step, to })
    }

    /// Gives up the latest dispensable state, or else the last one, whose place in the hierarchy the next
    /// state then takes one level up. The initial state always stays.
    fn make_room(&mut self) -> Option<Slot> {
        let mut highest = 0;
        let dispensable = (1..self.held.len()).rev().find(|&i| {
            let level = self.held[i].level;
            highest = highest.max(level);
            level < highest
        });
        let victim = dispensable.or_else(|| self.held.len().checked_sub(1).filter(|&last| last > 0))?;
        let Placed { index, level, .. } = self.held.remove(victim);
        self.level = if dispensable.is_some() { 0 } else { level.saturating_add(1) };
        self.pool.give_back(index);
        Some(Slot { tier: Tier::Memory, index })
    }

    fn end(&self, steps: u64) -> Result<Retreat, Error> {
        // The loop ended during the last advance, but not before a state that was kept since.
        let kept = self.held.last().map_or(0, |last| last.step);
        let first = kept.max(self.at.saturating_sub(self.options.block));
        if !(first..=self.at).contains(&steps) {
            return Err(Error::WrongEnd { announced: steps, first, last: self.at });
        }
        let held = self
            .held
            .iter()
            .map(|placed| Held { step: placed.step, slot: Slot { tier: Tier::Memory, index: placed.index } });
        let options = self.options.check(steps)?;
        Ok(Retreat::resume(steps, Turn::Ahead, Phase::At(steps), held.collect(), self.pool.clone(), options))
    }

    fn read(fields: &mut Fields<'_>) -> Result<Forward, Error> {
        let options = Options::new().block(fields.number("block")?).primal_first().check(MAX_STEPS)?;
        let pool = Pool::read(fields)?;
        let at: u64 = fields.number("at")?;
        let level = fields.number("level")?;
        let held = fields.list("held", Placed::read)?;
        pool.check(held.iter().map(|p| Slot { tier: Tier::Memory, index: p.index }))?;
        let sound = at <= MAX_STEPS
            && pool.limit() > 0
            && held.is_sorted_by(|a, b| a.step < b.step)
            && held.last().map_or(at == 0, |last| last.step <= at)
            && held.first().is_none_or(|first| first.step == 0);
        if sound {
            Ok(Forward { options, at, pool, held, level })
        } else {
            Err(bad("the positions contradict each other"))
        }
    }
}

impl Placed {
    fn read(text: &str) -> Result<Placed, Error> {
        let parts = text.split_once('@').and_then(|(step, rest)| Some((step, rest.split_once('^')?)));
        let (step, (index, level)) = parts.ok_or_else(|| bad("a held state has no slot or level"))?;
        Ok(Placed {
            step: number(step, "held")?,
            index: number(index, "held")?,
            level: number(level, "held")?,
        })
    }
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
