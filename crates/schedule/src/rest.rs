//! Planning anew after an interruption.

use crate::pool::Pool;
use crate::retreat::{Held, Phase, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer};
use crate::{Action, Error, Options, Schedule, Slot, Tier};

/// A memory slot of a survivor has an index below this.
const MOST_SLOTS: usize = 1 << 24;

/// How far an interrupted run had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The forward sweep was not over: nothing is reversed and `Turn` is still to come.
    Forward,
    /// The turn is over, and the steps from this one on are reversed.
    Reversed(u64),
}

/// Plans the rest of an interrupted run over the states that survived.
///
/// `survivors` are steps and the slots that hold the states before them, in any order; there must be
/// one before step 0 unless everything is reversed. `slots` are the slots in memory, those of survivors
/// included; survivors on disk count extra. The driver has no state at hand, so the first action is a `Load`.
///
/// Every gap between survivors is reversed as Revolve would, with the slots that are free by then; a state
/// on disk is read once and copied to memory if its gap is longer than a block. A state that lies at or
/// beyond the reversed steps is dropped.
///
/// ```
/// use ebbtide_schedule::{replan, Options, Progress, Slot, Tier};
///
/// let disk = |index| Slot { tier: Tier::Disk, index };
/// let survivors = [(0, disk(0)), (400, disk(1))];
/// let rest = replan(1000, &survivors, Progress::Reversed(700), 10, Options::new())?;
/// assert_eq!(rest.last().map(|action| action.to_string()), Some("drop disk[0]".to_string()));
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
pub fn replan(
    steps: u64,
    survivors: &[(u64, Slot)],
    progress: Progress,
    slots: usize,
    options: Options,
) -> Result<Rest, Error> {
    let options = options.check(steps)?;
    let refuse = |why| Err(Error::CannotReplan { why });
    let mut held: Vec<Held> = survivors.iter().map(|&(step, slot)| Held { step, slot }).collect();
    held.sort_unstable_by_key(|held| held.step);
    let (end, turn) = match progress {
        Progress::Forward => (steps, Turn::Ahead),
        Progress::Reversed(end) => (end, Turn::Done),
    };
    if end > steps || held.last().is_some_and(|last| last.step > steps) {
        return refuse("a survivor or the reversed steps lie beyond the end of the loop");
    }
    if held.windows(2).any(|pair| pair[0].step == pair[1].step) {
        return refuse("two survivors stand before the same step: keep one of them");
    }
    if (end > 0 || turn == Turn::Ahead) && held.first().is_none_or(|first| first.step > 0) {
        return refuse("the state before step 0 did not survive: store it again first");
    }
    let memory = held.iter().filter(|held| held.slot.tier == Tier::Memory).map(|held| held.slot.index);
    let taken: Vec<usize> = memory.collect();
    if taken.iter().any(|&index| index >= slots.min(MOST_SLOTS)) {
        return refuse("a survivor lies in a memory slot that is not among those offered");
    }
    let pool = Pool::without(slots, &taken);
    let retreat = Retreat::resume(end, turn, Phase::Empty, held, pool, options);
    retreat.check(steps).map_err(|_| Error::CannotReplan { why: "two survivors share a slot" })?;
    Ok(Rest { steps, retreat })
}

/// The rest of an interrupted run: see [`replan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    steps: u64,
    retreat: Retreat,
}

impl Rest {
    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        out.field("steps", self.steps)?;
        self.retreat.write(out)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Rest, Error> {
        let steps = fields.number("steps")?;
        Ok(Rest { steps, retreat: Retreat::read(fields, steps)? })
    }
}

impl Iterator for Rest {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        self.retreat.next_action(|gap| gap.revolve())
    }
}

impl Schedule for Rest {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}
