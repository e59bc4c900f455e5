use std::collections::VecDeque;
use std::fmt;

use ebbtide_schedule::{Action, Schedule, Slot, Tier};
use ebbtide_snapshot::{Memory, Place, Saved};

use crate::pace::Pace;
use crate::slots::Slots;
use crate::{Cancel, Counters, Error, Stepper};

/// How many actions to look ahead for states that will be read from disk.
const LOOK_AHEAD: usize = 256;

/// A schedule being carried out.
///
/// The sweep holds the slots; the [`Stepper`] holds the working state, the tape and the adjoint. If a run
/// stops with an error, the sweep is intact: run it again with the same stepper and it continues, computing the
/// working state again from the closest stored one where that is needed. A schedule that stores no state, as
/// [`StoreAll`](ebbtide_schedule::StoreAll), has nothing to compute it from: after a failure that may have spoilt the
/// working state, such as one of [`record`](Stepper::record), it ends in [`Error::Lost`].
pub struct Sweep<S, V> {
    schedule: S,
    slots: Slots<V>,
    /// Actions taken from the schedule and not yet done, to see coming loads early.
    ahead: VecDeque<Action>,
    /// The loads from disk among them.
    coming_loads: VecDeque<(Slot, u64)>,
    /// What is to be done next: the rest of an action, or one that failed.
    pending: Option<Action>,
    /// The step that the working state stands before; `None` if it was lost.
    live: Option<u64>,
    /// The recorded ranges that wait to be reversed; each one lies after the one below it.
    taped: Vec<(u64, u64)>,
    /// The step down to which everything is reversed; `None` before the turn.
    reversed: Option<u64>,
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
            schedule,
            slots: Slots::new(Box::new(Memory::new())),
            ahead: VecDeque::new(),
            coming_loads: VecDeque::new(),
            pending: None,
            live: Some(0),
            taped: Vec::new(),
            reversed: None,
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
        self
    }

    /// Starts in the middle, for a schedule that was planned for that.
    #[must_use]
    pub fn starting_at(mut self, start: Start) -> Self {
        self.live = start.live;
        self.reversed = start.reversed;
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
        self.live
    }

    /// The step down to which everything is reversed; `None` before the turn.
    pub fn reversed(&self) -> Option<u64> {
        self.reversed
    }

    /// The number of steps, once it is known.
    pub fn steps(&self) -> Option<u64> {
        self.schedule.steps()
    }

    /// Runs the schedule to its end, or continues with it after an error.
    pub fn run<T: Stepper<State = V>>(&mut self, stepper: &mut T) -> Result<Counters, Error<T::Error>> {
        while self.step(stepper)? {}
        Ok(self.counters)
    }

    /// Carries out one action, or a part of a long one; `false` when there is nothing left to do.
    pub fn step<T: Stepper<State = V>>(&mut self, stepper: &mut T) -> Result<bool, Error<T::Error>> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled { step: self.reversed.or(self.live).unwrap_or(0) });
        }
        let Some(action) = self.pending.take().or_else(|| self.next_action()) else {
            return self.finish().map(|()| false);
        };
        // Until it is done it is what to begin with next time.
        self.pending = Some(action);
        self.carry_out(action, stepper)?;
        Ok(true)
    }

    fn next_action(&mut self) -> Option<Action> {
        // An online schedule does not know what comes next before it is told where the loop ends.
        if !self.slots.has_disk() || self.schedule.steps().is_none() {
            return self.ahead.pop_front().or_else(|| self.schedule.next());
        }
        while self.ahead.len() < LOOK_AHEAD
            && let Some(action) = self.schedule.next()
        {
            if let Some(load) = disk_load(action) {
                self.coming_loads.push_back(load);
            }
            self.ahead.push_back(action);
        }
        let action = self.ahead.pop_front();
        if action.and_then(disk_load).is_some() {
            self.coming_loads.pop_front();
        }
        if let Some(&(slot, step)) = self.coming_loads.front() {
            self.slots.prefetch(slot, step);
        }
        action
    }

    fn finish<E>(&mut self) -> Result<(), Error<E>> {
        match self.reversed {
            Some(0) => Ok(()),
            Some(step) => Err(Error::Unfinished { why: format!("steps 0..{step} are not reversed") }),
            None => Err(Error::Unfinished { why: "the turn never came".to_owned() }),
        }
    }

    fn carry_out<T: Stepper<State = V>>(
        &mut self,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        let mut done = action;
        let mut rest = None;
        match action {
            Action::Advance { from, to } => {
                self.bring_to(from, action, stepper)?;
                let portion = self.pace.portion(from, to);
                let reached = self.advance(from, portion, action, stepper)?;
                self.pace.ran();
                done = Action::Advance { from, to: reached };
                if reached < portion {
                    self.schedule.end(reached)?;
                } else if portion < to {
                    rest = Some(Action::Advance { from: portion, to });
                }
            }
            Action::Record { from, to } => self.record(from, to, action, stepper)?,
            Action::Reverse { from, to } => self.reverse(from, to, action, stepper)?,
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
        self.pending = rest;
        if rest.is_none() {
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
        self.live = None;
        let reached = match self.schedule.steps() {
            Some(_) => stepper.advance(from..to).map(|()| to),
            None => stepper.advance_online(from..to),
        };
        let reached = reached.map_err(|source| Error::Stepper { action, source })?;
        self.check((from..=to).contains(&reached), action, || {
            format!("the stepper says that it went to step {reached}")
        })?;
        self.live = Some(reached);
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
        let top = self.taped.last().map_or(0, |range| range.1);
        let bottom = self.reversed.unwrap_or(u64::MAX);
        self.check(from < to && top <= from && to <= bottom, action, || {
            format!("the tape reaches step {top} and what is reversed begins at {bottom}")
        })?;
        self.bring_to(from, action, stepper)?;
        self.live = None;
        stepper.record(from..to).map_err(|source| Error::Stepper { action, source })?;
        self.live = Some(to);
        match self.taped.last_mut() {
            // Ranges that touch are one: whole-run tapes stay one entry.
            Some(range) if range.1 == from => range.1 = to,
            _ => self.taped.push((from, to)),
        }
        self.counters.recorded += to - from;
        self.counters.peak_tape_bytes = self.counters.peak_tape_bytes.max(stepper.tape_bytes());
        Ok(())
    }

    fn reverse<T: Stepper<State = V>>(
        &mut self,
        from: u64,
        to: u64,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        let legal = self.reversed == Some(to)
            && from < to
            && self.taped.last().is_some_and(|range| range.1 == to && range.0 <= from);
        self.check(legal, action, || match (self.reversed, self.taped.last()) {
            (None, _) => "the turn has not come".to_owned(),
            (_, None) => "no tape is kept".to_owned(),
            (Some(down_to), Some(tape)) => {
                format!("steps down to {down_to} are reversed and the tape is of {}..{}", tape.0, tape.1)
            }
        })?;
        stepper.reverse(from..to).map_err(|source| Error::Stepper { action, source })?;
        if let Some(range) = self.taped.last_mut() {
            range.1 = from;
            if range.0 == from {
                self.taped.pop();
            }
        }
        self.reversed = Some(from);
        self.counters.reversed += to - from;
        Ok(())
    }

    fn turn<T: Stepper<State = V>>(
        &mut self,
        action: Action,
        stepper: &mut T,
    ) -> Result<(), Error<T::Error>> {
        self.check(self.reversed.is_none(), action, || "it has come before".to_owned())?;
        let Some(steps) = self.schedule.steps() else {
            return self.check(false, action, || "nobody knows how many steps there are".to_owned());
        };
        self.bring_to(steps, action, stepper)?;
        if let Err(source) = stepper.turn() {
            self.live = None;
            return Err(Error::Stepper { action, source });
        }
        self.reversed = Some(steps);
        Ok(())
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
        self.live = None;
        match self.slots.load(slot, step) {
            Ok(value) => {
                stepper.restore(value).map_err(|source| Error::Stepper { action, source })?;
                self.live = Some(step);
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
        if let Some(live) = self.live {
            return self.check(live == step, action, || format!("the state is the one before step {live}"));
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
                    self.live = Some(step);
                    self.counters.repairs += 1;
                    self.tell(Event::Repaired { step, from });
                    return Ok(());
                }
                Err(_) => self.slots.mark_lost(slot),
            }
        }
    }

    fn check<E>(&self, legal: bool, action: Action, why: impl FnOnce() -> String) -> Result<(), Error<E>> {
        if legal { Ok(()) } else { Err(Error::Illegal { action, why: why() }) }
    }

    fn tell(&mut self, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer(&Progress {
                event,
                steps: self.schedule.steps(),
                reversed: self.reversed,
                counters: &self.counters,
            });
        }
    }
}

fn disk_load(action: Action) -> Option<(Slot, u64)> {
    match action {
        Action::Load { step, slot } if slot.tier == Tier::Disk => Some((slot, step)),
        _ => None,
    }
}

impl<S, V> fmt::Debug for Sweep<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep")
            .field("live", &self.live)
            .field("reversed", &self.reversed)
            .field("pending", &self.pending)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
