use crate::retreat::{Gap, Move, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad};
use crate::{Action, Error, Options, Schedule, Shape, Totals, revolve};

/// Keeps a state at every `period`-th step of the forward sweep.
///
/// By default a whole period is one block: ⌈n / period⌉ states, the tape of one period, and every step is
/// executed at most twice. With a smaller block the steps of a period are reversed as Revolve
/// would, with the slots that are free by then. Not optimal: for users who want two executions at most,
/// and for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periodic {
    steps: u64,
    period: u64,
    retreat: Retreat,
}

impl Periodic {
    /// One block per period, the last one recorded on the way.
    pub fn new(steps: u64, period: u64) -> Result<Periodic, Error> {
        Periodic::with(steps, period, Options::new().block(period))
    }

    /// The period √n, rounded up, where the number of states and that of taped steps are alike.
    pub fn sqrt(steps: u64) -> Result<Periodic, Error> {
        let root = steps.isqrt();
        Periodic::new(steps, (root + u64::from(root * root < steps)).max(1))
    }

    /// With a block size and a shape. A block longer than the period means the period.
    pub fn with(steps: u64, period: u64, options: Options) -> Result<Periodic, Error> {
        if period == 0 {
            return Err(Error::ZeroLength { what: "period" });
        }
        let options = Options { block: options.block.min(period), ..options }.check(steps)?;
        let slots = usize::try_from(steps.div_ceil(period)).unwrap_or(usize::MAX);
        Ok(Periodic { steps, period, retreat: Retreat::forward(steps, slots, options) })
    }

    /// The states that the forward sweep may keep.
    pub fn slots(&self) -> usize {
        self.retreat.slots()
    }

    /// What the whole schedule costs. By formula; the number of terms is that of the periods where the
    /// block is shorter than the period.
    pub fn totals(&self) -> Totals {
        let options = self.retreat.options();
        let (steps, period) = (self.steps, self.period.min(self.steps.max(1)));
        let mut totals = Totals { records: steps.into(), reversals: steps.into(), ..Totals::default() };
        totals.peak_tape = options.block.min(steps);
        if steps == 0 {
            return totals;
        }
        let last = steps - (steps.div_ceil(period) - 1) * period;
        let whole = u128::from((steps - last) / period);
        let plain = Totals { advances: u128::from(steps - last), ..totals };
        // The last period is the only one that the forward sweep may record.
        let mut add = |below: u64, slots: usize, times: u128| {
            let options = Options { shape: Shape::RecordLast, ..options };
            let length = period;
            let part = revolve::totals(length, slots, options).unwrap_or_default();
            // Its first state is there already if it was stored on the way.
            let stored = u128::from(options.virtual_steps(length) <= options.block);
            totals.advances += part.advances * times;
            totals.memory.stores += (part.memory.stores + stored) * times;
            totals.memory.loads += (part.memory.loads + 1) * times;
            let peak = below + part.memory.peak_slots.max(1);
            totals.memory.peak_slots = totals.memory.peak_slots.max(peak);
        };
        if whole > 0 && options.block == period {
            add(whole as u64 - 1, 1, whole);
        } else {
            for index in 0..whole as u64 {
                let free = usize::try_from(whole as u64 - index).unwrap_or(usize::MAX);
                add(index, free.saturating_add(1), 1);
            }
        }
        totals.advances += plain.advances;
        let part = revolve::totals(last, 1, options).unwrap_or_default();
        totals.advances += part.advances;
        totals.memory.stores += part.memory.stores;
        totals.memory.loads += part.memory.loads;
        let peak = whole as u64 + part.memory.peak_slots;
        totals.memory.peak_slots = totals.memory.peak_slots.max(peak);
        totals
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        out.field("steps", self.steps)?;
        out.field("period", self.period)?;
        self.retreat.write(out)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Periodic, Error> {
        let steps: u64 = fields.number("steps")?;
        let period: u64 = fields.number("period")?;
        let retreat = Retreat::read(fields, steps)?;
        let fresh = Periodic::with(steps, period, retreat.options())?;
        if fresh.retreat.options() != retreat.options() || fresh.slots() != retreat.slots() {
            return Err(bad("the block or the slots do not fit the period"));
        }
        Ok(Periodic { steps, period, retreat })
    }
}

/// One period on the way forward; as Revolve would where the gap is at most one period.
fn decide(gap: &Gap, steps: u64, period: u64) -> Move {
    match gap.turn {
        Turn::Ahead if steps - gap.from > period => gap.in_memory_by(|_| period),
        _ => gap.revolve(),
    }
}

impl Iterator for Periodic {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let (steps, period) = (self.steps, self.period);
        self.retreat.next_action(|gap| decide(gap, steps, period))
    }
}

impl Schedule for Periodic {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}
