use std::fmt;

use ebbtide_schedule::{Action, Schedule, Slot, Tier};
use ebbtide_snapshot::{Memory, Place, Saved};

use crate::driver::{Driver, Illegal, Standing, part_of};
use crate::look_ahead::LookAhead;
use crate::pace::Pace;
use crate::slots::Slots;
use crate::{Cancel, Counters, Error, Stepper};

/// A schedule being carried out.
///
/// The sweep holds the slots; the [`Stepper`] holds the working state, the tape and the adjoint. If a run
/// stops with an error, the sweep is intact: run it again with the same stepper and it continues, computing the
/// working state again from the closest stored one where that is needed. A schedule that stores no state, as
/// [`StoreAll`](ebbtide_schedule::StoreAll), has nothing to compute it from: after a failure that may have spoilt the
/// working state, such as one of [`record`](Stepper::record), it ends in [`Error::Lost`].
pub struct Sweep<S, V> {
    driver: Driver<LookAhead<S>>,
    slots: Slots<V>,
    counters: Counters,
    pace: Pace,
    cancel: Cancel,
    observer: Option<Observer>,
}

pub(crate) type Observer = Box<dyn FnMut(&Progress<'_>) + Send>;

/// What an observer receives.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// What has just happened.
    pub event: Event,
    /// The number of steps, once it is known.
    pub steps: Option<u64>,
    /// The step down to which everything is reversed; `None` in the forward sweep.
    pub reversed: Option<u64>,
    /// Totals so far.
    pub counters: &'a Counters,
}

/// Something that happened in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An action, or a part of a long one, is done.
    Did(Action),
    /// The state before `step` was lost or damaged and has been computed again.
    Repaired {
        /// The step.
        step: u64,
        /// The step of the stored state that the computation began with.
        from: u64,
    },
}

/// Where a sweep starts that continues with what another one left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The step that the stepper's working state stands before, if it has one that can be used.
    pub live: Option<u64>,
    /// The step down to which everything is reversed and held by the stepper's adjoint; `None` if the turn
    /// is still to come.
    pub reversed: Option<u64>,
}

impl<S: Schedule, V: Saved> Sweep<S, V> {
    /// A sweep from the beginning, with slots in memory.
    pub fn new(schedule: S) -> Self {
        Self {
            driver: Driver::new(LookAhead::new(schedule)),
            slots: Slots::new(Box::new(Memory::new())),
            counters: Counters::default(),
            pace: Pace::new(),
            cancel: Cancel::new(),
            observer: None,
        }
    }

    /// Keeps the slots of a tier in `place`. States that it holds already count as stored.
    #[must_use]
    pub fn with_place(mut self, tier: Tier, place: impl Place<V> + 'static) -> Self {
        self.slots.set_place(tier, Box::new(place));
        if tier == Tier::Disk {
            self.driver.schedule_mut().watch_disk();
        }
        self
    }

    /// Starts in the middle, for a schedule that was planned for that.
    #[must_use]
    pub fn starting_at(mut self, start: Start) -> Self {
        self.driver.start(Standing { live: start.live, reversed: start.reversed, taped: Vec::new() });
        self
    }

    /// Calls `observer` after each action.
    #[must_use]
    pub fn observe(mut self, observer: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Stops between two actions when `cancel` says so.
    #[must_use]
    pub fn cancel_with(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Totals so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The step that the working state stands before; `None` if it was lost in a failure.
    pub fn live(&self) -> Option<u64> {
        self.driver.standing().live
    }

    /// The step down to which everything is reversed; `None` before the turn.
    pub fn reversed(&self) -> Option<u64> {
        self.driver.standing().reversed
    }

    /// The number of steps, once it is known.
    pub fn steps(&self) -> Option<u64> {
        self.driver.steps()
    }

    /// Runs the schedule to its end, or continues with it after an error.
    pub fn run<T: Stepper<State = V>>(&mut self, stepper: &mut T) -> Result<Counters, Error<T::Error>> {
        while self.step(stepper)? {}
        Ok(self.counters)
    }

    /// Carries out one action, or a part of a long one; `false` when there is nothing left to do.
    pub fn step<T: Stepper<State = V>>(&mut self, stepper: &mut T) -> Result<bool, Error<T::Error>> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled { step: self.reversed().or(self.live()).unwrap_or(0) });
        }
        let Some(action) = self.driver.next_action() else {
            return self.driver.finish().map(|()| false).map_err(|why| Error::Unfinished { why });
        };
        if let Some((slot, step)) = self.driver.schedule().coming_load() {
            self.slots.prefetch(slot, step);
        }
        self.driver.check(action)?;
        self.carry_out(action, stepper)?;
        Ok(true)
    }

    fn carry_out<T: Stepper<State = V>>(
        &mut self,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        let mut done = action;
        match action {
            Action::Advance { from, to } => {
                self.bring_to(from, action, stepper)?;
                let portion = self.pace.portion(from, to);
                let reached = self.advance(from, portion, action, stepper)?;
                self.pace.ran();
                done = part_of(action, reached - from);
                if reached < portion {
                    self.driver.end(reached)?;
                }
            }
            Action::Record { from, to } => self.record(from, to, action, stepper)?,
            Action::Reverse { from, to } => {
                stepper.reverse(from..to).map_err(|source| Error::Stepper { action, source })?;
                self.counters.reversed += to - from;
            }
            Action::Store { step, slot } => {
                self.bring_to(step, action, stepper)?;
                self.store(step, slot, action, stepper)?;
            }
            Action::Load { step, slot } => self.load(step, slot, action, stepper)?,
            Action::Drop { slot } => {
                let legal = self.slots.expected(slot).is_some();
                self.check(legal, action, || format!("{slot} holds nothing"))?;
                self.slots.discard(slot).map_err(|source| Error::Snapshot { action, source })?;
            }
            Action::Turn => self.turn(action, stepper)?,
        }
        if self.driver.did(done) {
            self.counters.actions += 1;
        }
        self.tell(Event::Did(done));
        Ok(())
    }

    fn advance<T: Stepper<State = V>>(
        &mut self,
        from: u64,
        to: u64,
        action: Action,
        stepper: &mut T,
    ) -> Result<u64, Error<T::Error>> {
        self.driver.lose();
        let reached = match self.steps() {
            Some(_) => stepper.advance(from..to).map(|()| to),
            None => stepper.advance_online(from..to),
        };
        let reached = reached.map_err(|source| Error::Stepper { action, source })?;
        self.check((from..=to).contains(&reached), action, || {
            format!("the stepper says that it went to step {reached}")
        })?;
        self.counters.advanced += reached - from;
        Ok(reached)
    }

    fn record<T: Stepper<State = V>>(
        &mut self,
        from: u64,
        to: u64,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        self.bring_to(from, action, stepper)?;
        self.driver.lose();
        stepper.record(from..to).map_err(|source| Error::Stepper { action, source })?;
        self.counters.recorded += to - from;
        self.counters.peak_tape_bytes = self.counters.peak_tape_bytes.max(stepper.tape_bytes());
        Ok(())
    }

    fn turn<T: Stepper<State = V>>(
        &mut self,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        if let Some(steps) = self.steps() {
            self.bring_to(steps, action, stepper)?;
        }
        stepper.turn().map_err(|source| {
            self.driver.lose();
            Error::Stepper { action, source }
        })
    }

    fn store<T: Stepper<State = V>>(
        &mut self,
        step: u64,
        slot: Slot,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        let storage = |source| Error::Snapshot { action, source };
        let value = self.slots.begin(slot).map_err(storage)?;
        stepper.save(value).map_err(|source| Error::Stepper { action, source })?;
        self.slots.commit(slot, step).map_err(storage)?;
        let counters = self.counters.tier_mut(slot.tier);
        counters.stores += 1;
        counters.peak_slots = counters.peak_slots.max(self.slots.occupied(slot.tier));
        counters.peak_bytes = counters.peak_bytes.max(self.slots.bytes(slot.tier));
        Ok(())
    }

    fn load<T: Stepper<State = V>>(
        &mut self,
        step: u64,
        slot: Slot,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        let expected = self.slots.expected(slot);
        self.check(expected == Some(step), action, || match expected {
            Some(other) => format!("{slot} holds the state before step {other}"),
            None => format!("{slot} holds nothing"),
        })?;
        self.driver.lose();
        match self.slots.load(slot, step) {
            Ok(value) => {
                stepper.restore(value).map_err(|source| Error::Stepper { action, source })?;
                self.counters.tier_mut(slot.tier).loads += 1;
                Ok(())
            }
            Err(source) => {
                // A lost or damaged state costs time, not the run: an earlier one leads to it.
                self.slots.mark_lost(slot);
                match self.bring_to(step, action, stepper) {
                    Err(Error::Lost { .. }) => Err(Error::Snapshot { action, source }),
                    result => result,
                }
            }
        }
    }

    /// Makes the working state the one before `step`: it is, or it was lost and is computed again.
    fn bring_to<T: Stepper<State = V>>(
        &mut self,
        step: u64,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        if self.live().is_some() {
            return Ok(());
        }
        loop {
            let Some((slot, from)) = self.slots.closest(step) else { return Err(Error::Lost { step }) };
            match self.slots.load(slot, from) {
                Ok(value) => {
                    stepper.restore(value).map_err(|source| Error::Stepper { action, source })?;
                    self.counters.tier_mut(slot.tier).loads += 1;
                    if from < step {
                        stepper.advance(from..step).map_err(|source| Error::Stepper { action, source })?;
                        self.counters.advanced += step - from;
                    }
                    self.driver.brought_back(step);
                    self.counters.repairs += 1;
                    self.tell(Event::Repaired { step, from });
                    return Ok(());
                }
                Err(_) => self.slots.mark_lost(slot),
            }
        }
    }

    fn check<E>(&self, legal: bool, action: Action, why: impl FnOnce() -> String) -> Result<(), Error<E>> {
        if legal { Ok(()) } else { Err(Illegal { action, why: why() }.into()) }
    }

    fn tell(&mut self, event: Event) {
        let (steps, reversed) = (self.steps(), self.reversed());
        if let Some(observer) = &mut self.observer {
            observer(&Progress { event, steps, reversed, counters: &self.counters });
        }
    }
}

impl<S: Schedule, V> fmt::Debug for Sweep<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("standing", self.driver.standing())
            .field("rest", &self.driver.rest())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
