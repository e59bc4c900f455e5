use std::fmt;
use std::sync::Arc;

use crate::mixed_plan::{First, MixedPlan};
use crate::mixed_totals::Parts;
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, Method, Options, Schedule, Shape, Slot, Tier, Totals, Traffic};

/// Reverses `steps` steps with slots that hold either a state or the tape of one block.
///
/// Where tapes are not larger than states this beats [`Revolve`](crate::Revolve), which keeps states
/// alone. `slots` bounds the states and the kept tapes together; the block that is recorded to be
/// reversed at once needs no slot. A kept tape shows as a `Record` whose `Reverse` comes later.
///
/// Blocks lie at multiples of the block size, the last one may be short, and the optimum is that on this grid.
/// Exact by dynamic programming as long as n²·s/2 ≤ 5·10⁹ for n ≤ 16384 blocks (so for 10⁴ blocks and up
/// to 100 slots); beyond that it splits as Revolve does until the parts are short enough for the table:
/// [`Mixed::method`] says which.
///
/// ```
/// use ebbtide_schedule::Mixed;
///
/// let totals = Mixed::new(1000, 10)?.totals();
/// assert_eq!(totals.executions(), 3921); // Revolve 4636
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mixed {
    steps: u64,
    slots: usize,
    options: Options,
    plan: Arc<MixedPlan>,
    method: Method,
    /// Units from here on are reversed.
    end: u64,
    turned: bool,
    at: At,
    /// What the slots hold, by unit.
    held: Vec<Kept>,
    /// Memory slots of states that are free again; slots from `fresh` on were never used.
    fresh: usize,
    returned: Vec<usize>,
}

/// What the driver has at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The state before this unit.
    State(u64),
    /// The tape of this unit, which is in no slot.
    Tape(u64),
    Nothing,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    State { unit: u64, index: usize },
    Tape { unit: u64 },
}

impl Kept {
    fn unit(&self) -> u64 {
        match *self {
            Kept::State { unit, .. } | Kept::Tape { unit } => unit,
        }
    }
}

impl Mixed {
    /// Blocks of one step, the last one recorded on the way.
    pub fn new(steps: u64, slots: usize) -> Result<Mixed, Error> {
        Mixed::with(steps, slots, Options::new())
    }

    /// With a block size and a shape.
    pub fn with(steps: u64, slots: usize, options: Options) -> Result<Mixed, Error> {
        let units = Mixed::count_units(steps, options.check(steps)?);
        let exact = MixedPlan::can_be_exact(units, clamp(slots, units));
        Mixed::by(if exact { Method::Exact } else { Method::Approximate }, steps, slots, options)
    }

    /// With a short table whatever the length: planned in a time that does not grow with it.
    pub fn approximate(steps: u64, slots: usize, options: Options) -> Result<Mixed, Error> {
        Mixed::by(Method::Approximate, steps, slots, options)
    }

    fn by(method: Method, steps: u64, slots: usize, options: Options) -> Result<Mixed, Error> {
        let options = options.check(steps)?;
        let units = Mixed::count_units(steps, options);
        if slots == 0 && units > 1 {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        Ok(Mixed {
            steps,
            slots,
            options,
            plan: Arc::new(MixedPlan::new(units, clamp(slots, units), method)),
            method,
            end: units,
            turned: false,
            at: At::State(0),
            held: Vec::new(),
            fresh: 0,
            returned: Vec::new(),
        })
    }

    /// How many states and kept tapes there are at most, together.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The steps of a block.
    pub fn block(&self) -> u64 {
        self.options.block
    }

    /// The number of units, the empty one at the end of a plain forward sweep included.
    fn count_units(steps: u64, options: Options) -> u64 {
        options.virtual_steps(steps).div_ceil(options.block)
    }

    /// How the schedule was planned.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The first step of a unit; the unit after the last starts at the end.
    fn step(&self, unit: u64) -> u64 {
        unit.saturating_mul(self.options.block).min(self.steps)
    }

    fn units(&self) -> u64 {
        Mixed::count_units(self.steps, self.options)
    }

    fn enter(&mut self, unit: u64) -> Action {
        let (from, units) = (self.step(unit), self.end - unit);
        let own = match self.held.last() {
            Some(&Kept::State { unit: held, index }) if held == unit => Some(index),
            _ => None,
        };
        if units == 1 {
            self.at = At::Tape(unit);
            return Action::Record { from, to: self.step(unit + 1) };
        }
        // A text that was not written by us may hold more than there is room for.
        let free =
            self.slots.saturating_add(usize::from(own.is_some())).saturating_sub(self.held.len()) as u64;
        match (self.plan.first(units, free.min(self.units())), own) {
            (First::Tape, Some(index)) => {
                self.held.pop();
                self.returned.push(index);
                Action::Drop { slot: memory(index) }
            }
            (First::Tape, None) => {
                self.held.push(Kept::Tape { unit });
                self.at = At::State(unit + 1);
                Action::Record { from, to: self.step(unit + 1) }
            }
            (First::Advance(_), None) => {
                let index = self.returned.pop().unwrap_or_else(|| {
                    self.fresh += 1;
                    self.fresh - 1
                });
                self.held.push(Kept::State { unit, index });
                Action::Store { step: from, slot: memory(index) }
            }
            (First::Advance(distance), Some(_)) => {
                let next = unit + distance.clamp(1, units - 1);
                self.at = At::State(next);
                Action::Advance { from, to: self.step(next) }
            }
        }
    }

    fn go_back(&mut self) -> Option<Action> {
        let action = match *self.held.last()? {
            Kept::Tape { unit } => {
                self.held.pop();
                self.end = unit;
                Action::Reverse { from: self.step(unit), to: self.step(unit + 1) }
            }
            Kept::State { unit, index } if unit < self.end => {
                self.at = At::State(unit);
                Action::Load { step: self.step(unit), slot: memory(index) }
            }
            Kept::State { index, .. } => {
                self.held.pop();
                self.returned.push(index);
                Action::Drop { slot: memory(index) }
            }
        };
        Some(action)
    }

    /// What the whole schedule costs, by formula over the parts that differ.
    pub fn totals(&self) -> Totals {
        let units = self.units();
        let slots = clamp(self.slots, units);
        let parts = Parts::new(&self.plan, units, slots);
        let whole = parts.of(units, slots);
        let mut advances = whole.advances * u128::from(self.options.block);
        // The last real unit of a plain forward sweep may be short, and it is advanced over.
        let short =
            units.saturating_mul(self.options.block).saturating_sub(self.options.virtual_steps(self.steps));
        if self.options.shape == Shape::PrimalFirst && short > 0 {
            advances -= u128::from(short) * parts.advances_over(units - 2, units, slots);
        }
        Totals {
            advances,
            records: self.steps.into(),
            reversals: self.steps.into(),
            memory: Traffic { stores: whole.stores, loads: whole.loads, peak_slots: whole.peak_states },
            disk: Traffic::default(),
            peak_tape: self.peak_tape(whole.peak_tapes),
        }
    }

    /// Kept tapes and the one to be reversed at once, which may be short or empty.
    fn peak_tape(&self, units: u64) -> u64 {
        units.saturating_mul(self.options.block).min(self.steps)
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.field("steps", self.steps)?;
        out.field("slots", self.slots)?;
        out.field("block", self.options.block)?;
        out.field("shape", self.options.shape)?;
        out.field("method", self.method)?;
        out.field("end", self.end)?;
        out.field("turned", u8::from(self.turned))?;
        match self.at {
            At::State(unit) => out.field("at", format_args!("state:{unit}"))?,
            At::Tape(unit) => out.field("at", format_args!("tape:{unit}"))?,
            At::Nothing => out.field("at", "nothing")?,
        }
        out.list("held", &self.held)?;
        out.list("returned", &self.returned)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Mixed, Error> {
        let (steps, slots) = (fields.number("steps")?, fields.number("slots")?);
        let options = Options { block: fields.number("block")?, shape: fields.number("shape")? };
        let method = fields.number("method")?;
        let units = Mixed::count_units(steps, options.check(steps)?);
        if method == Method::Exact && !MixedPlan::can_be_exact(units, clamp(slots, units)) {
            return Err(bad("there are too many steps for an exact plan"));
        }
        let fresh = Mixed::by(method, steps, slots, options)?;
        let end = fields.number("end")?;
        let turned = match fields.text("turned")? {
            "0" => false,
            "1" => true,
            _ => return Err(bad("the turn is neither ahead nor done")),
        };
        let at = match fields.text("at")?.split_once(':') {
            Some(("state", unit)) => At::State(number(unit, "at")?),
            Some(("tape", unit)) => At::Tape(number(unit, "at")?),
            None => At::Nothing,
            Some(_) => return Err(bad("what is at hand is unknown")),
        };
        let held = fields.list("held", Kept::read)?;
        let returned: Vec<usize> = fields.list("returned", |text| number(text, "returned"))?;
        let mixed = Mixed { end, turned, at, held, returned, ..fresh };
        mixed.checked(options)
    }

    /// Whether the schedule can continue to its end from here.
    fn checked(mut self, options: Options) -> Result<Mixed, Error> {
        let mut used = self.returned.clone();
        used.extend(self.held.iter().filter_map(|kept| match kept {
            Kept::State { index, .. } => Some(*index),
            Kept::Tape { .. } => None,
        }));
        used.sort_unstable();
        self.fresh = used.len();
        let dense = used.iter().enumerate().all(|(expected, &index)| index == expected);
        let top = self.held.last().map_or(0, |kept| kept.unit());
        // From each kept thing up to the next there is a way: a tape covers one unit, a state any number.
        let mut covered = true;
        let mut next = match self.at {
            At::State(unit) | At::Tape(unit) => unit,
            At::Nothing => self.end,
        };
        for kept in self.held.iter().rev() {
            covered &= match kept {
                Kept::Tape { unit } => unit.checked_add(1) == Some(next),
                Kept::State { unit, .. } => *unit <= next,
            };
            next = kept.unit();
        }
        covered &= next == 0;
        let at_hand = match self.at {
            At::State(unit) => (top..self.end).contains(&unit) || (self.end == 0 && !self.turned),
            At::Tape(unit) => (top..self.end).contains(&unit) && self.end - unit == 1,
            At::Nothing => self.turned,
        };
        let sound = dense
            && covered
            && at_hand
            && options == self.options
            && self.end <= self.units()
            && (self.turned || self.end == self.units())
            && self.held.len() <= self.slots
            && self.held.is_sorted_by(|a, b| a.unit() < b.unit());
        if sound { Ok(self) } else { Err(bad("the positions contradict each other")) }
    }
}

impl Iterator for Mixed {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        match self.at {
            At::State(unit) if !self.turned && self.step(unit) == self.steps => {
                // The forward sweep is over; the empty unit at the end of a plain one is done with it.
                (self.turned, self.at, self.end) = (true, At::Nothing, unit);
                Some(Action::Turn)
            }
            At::State(unit) if unit < self.end => Some(self.enter(unit)),
            At::Tape(_) if !self.turned => {
                self.turned = true;
                Some(Action::Turn)
            }
            At::Tape(unit) => {
                let to = self.step(self.end);
                (self.at, self.end) = (At::Nothing, unit);
                Some(Action::Reverse { from: self.step(unit), to })
            }
            At::State(_) | At::Nothing => self.go_back(),
        }
    }
}

impl Schedule for Mixed {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}

/// More slots than units are no better than as many as units.
fn clamp(slots: usize, units: u64) -> u64 {
    (slots as u64).min(units)
}

fn memory(index: usize) -> Slot {
    Slot { tier: Tier::Memory, index }
}

impl Kept {
    fn read(text: &str) -> Result<Kept, Error> {
        match text.split_once('@') {
            Some((unit, index)) => {
                Ok(Kept::State { unit: number(unit, "held")?, index: number(index, "held")? })
            }
            None => Ok(Kept::Tape { unit: number(text, "held")? }),
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::State { unit, index } => write!(f, "{unit}@{index}"),
            Kept::Tape { unit } => write!(f, "{unit}"),
        }
    }
}
