use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad};
use crate::{Action, Error, MAX_STEPS, Schedule, Totals};

/// Records every step on the way forward and keeps no state: `n` executions and `n` tapes.
///
/// Its actions are `Record 0..n`, `Turn`, `Reverse 0..n`. It has neither slots nor blocks, and no plain
/// forward sweep: its tape is live at the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAll {
    steps: u64,
    done: u8,
}

impl StoreAll {
    /// For a loop of `steps` steps.
    pub fn new(steps: u64) -> Result<StoreAll, Error> {
        if steps > MAX_STEPS {
            return Err(Error::TooManySteps { steps });
        }
        Ok(StoreAll { steps, done: 0 })
    }

    /// What the whole schedule costs.
    pub fn totals(&self) -> Totals {
        Totals {
            records: self.steps.into(),
            reversals: self.steps.into(),
            peak_tape: self.steps,
            ..Totals::default()
        }
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        out.field("steps", self.steps)?;
        out.field("done", self.done)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<StoreAll, Error> {
        let schedule = StoreAll::new(fields.number("steps")?)?;
        match fields.number("done")? {
            done @ 0..=3 => Ok(StoreAll { done, ..schedule }),
            _ => Err(bad("more actions are done than there are")),
        }
    }
}

impl Iterator for StoreAll {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let (from, to) = (0, self.steps);
        let action = match self.done {
            0 if to > 0 => Action::Record { from, to },
            0 | 1 => {
                self.done = 2;
                return Some(Action::Turn);
            }
            2 if to > 0 => Action::Reverse { from, to },
            _ => return None,
        };
        self.done += 1;
        Some(action)
    }
}

impl Schedule for StoreAll {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}
