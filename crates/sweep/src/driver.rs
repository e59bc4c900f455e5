//! What comes next in a schedule, and whether it makes sense where the run stands.
//!
//! The one driver of schedules. It carries out nothing itself: [`Sweep`](crate::Sweep) does that on a stepper, the runtime on
//! the segments of a compiled program. Both ask for the next action, do it or a part of it, and say what they did.
//!
//! Invariant: an action is the next one until all of it is done, so a run that failed or was cut off continues with it.
//! Which states slots hold is known by who keeps them, and checked there.

use ebbtide_schedule::{Action, Error, Schedule};

/// Where a run stands between two actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The step that the working state stands before; `None` if it was lost.
    pub live: Option<u64>,
    /// The step down to which everything is reversed; `None` before the turn.
    pub reversed: Option<u64>,
    /// The recorded ranges that wait to be reversed; each one lies after the one below it.
    pub taped: Vec<(u64, u64)>,
}

impl Default for Standing {
    /// Before the first step, with nothing on the tape.
    fn default() -> Self {
        Self { live: Some(0), reversed: None, taped: Vec::new() }
    }
}

impl Standing {
    /// Can a loop of so many steps, where that is known, stand so?
    pub fn is_possible(&self, steps: Option<u64>) -> bool {
        let end = self.reversed.or(steps).unwrap_or(u64::MAX);
        let within = |step: u64| steps.is_none_or(|steps| step <= steps);
        self.live.is_none_or(within)
            && self.reversed.is_none_or(|reversed| steps.is_some() && within(reversed))
            && self.taped.iter().all(|(from, to)| from < to && *to <= end)
            && self.taped.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }
}

/// An action that makes no sense where a run stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the schedule is not legal: `{action}`, but {why}")]
pub struct Illegal {
    /// The action.
    pub action: Action,
    /// What is wrong with it.
    pub why: String,
}

/// A schedule that is being followed.
///
/// ```
/// use ebbtide_schedule::{Action, Revolve};
/// use ebbtide_sweep::Driver;
///
/// let mut driver = Driver::new(Revolve::new(10, 3)?);
/// let mut reversed = 0;
/// while let Some(action) = driver.next_action() {
///     driver.check(action)?;
///     if let Action::Reverse { from, to } = action {
///         reversed += to - from;
///     }
///     driver.did(action);
/// }
/// driver.finish()?;
/// assert_eq!(reversed, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Driver<S> {
    schedule: S,
    standing: Standing,
    /// What is to be done next: the rest of an action, or one that is under way or failed.
    next: Option<Action>,
}

impl<S: Schedule> Driver<S> {
    /// Follows a schedule from its beginning.
    pub fn new(schedule: S) -> Self {
        Self::resumed(schedule, Standing::default(), None)
    }

    /// Follows a schedule from where a run stands, beginning with the rest of an action.
    pub fn resumed(schedule: S, standing: Standing, rest: Option<Action>) -> Self {
        Self { schedule, standing, next: rest }
    }

    /// Says where the run stands, before the first action.
    pub(crate) fn start(&mut self, standing: Standing) {
        self.standing = standing;
    }

    /// The schedule: what comes after the action that is to be done next.
    pub fn schedule(&self) -> &S {
        &self.schedule
    }

    /// The schedule, to be set up before the first action.
    pub(crate) fn schedule_mut(&mut self) -> &mut S {
        &mut self.schedule
    }

    /// Where the run stands.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The number of steps, once it is known.
    pub fn steps(&self) -> Option<u64> {
        self.schedule.steps()
    }

    /// What is left of an action that was done in part, or all of one that is not done.
    pub fn rest(&self) -> Option<Action> {
        self.next
    }

    /// The next action. It stays the next one until [`did`](Self::did) says that all of it is done.
    pub fn next_action(&mut self) -> Option<Action> {
        self.next = self.next.take().or_else(|| self.schedule.next());
        self.next
    }

    /// Does the action make sense where the run stands? Where the working state was lost, it is taken to be brought back.
    pub fn check(&self, action: Action) -> Result<(), Illegal> {
        let at = match action {
            Action::Advance { from, .. } | Action::Record { from, .. } => Some(from),
            Action::Store { step, .. } => Some(step),
            Action::Turn => self.steps(),
            Action::Load { .. } | Action::Drop { .. } | Action::Reverse { .. } => None,
        };
        if let (Some(live), Some(at)) = (self.standing.live, at)
            && live != at
        {
            return Err(Illegal { action, why: format!("the state is the one before step {live}") });
        }
        let why = match action {
            Action::Advance { from, to } => self.refused_advance(from, to),
            Action::Record { from, to } => self.refused_record(from, to),
            Action::Reverse { from, to } => self.refused_reversal(from, to),
            Action::Turn if self.standing.reversed.is_some() => Some("it has come before".to_owned()),
            Action::Turn if self.steps().is_none() => Some("the number of steps is not known".to_owned()),
            Action::Turn | Action::Store { .. } | Action::Load { .. } | Action::Drop { .. } => None,
        };
        why.map_or(Ok(()), |why| Err(Illegal { action, why }))
    }

    /// The first step that need not be run any more.
    fn bottom(&self) -> u64 {
        self.standing.reversed.or(self.steps()).unwrap_or(u64::MAX)
    }

    fn refused_advance(&self, from: u64, to: u64) -> Option<String> {
        let bottom = self.bottom();
        (from >= to || to > bottom).then(|| format!("there is nothing to run from step {bottom} on"))
    }

    fn refused_record(&self, from: u64, to: u64) -> Option<String> {
        let top = self.standing.taped.last().map_or(0, |range| range.1);
        let bottom = self.bottom();
        (from >= to || top > from || to > bottom)
            .then(|| format!("the tape reaches step {top} and what is reversed begins at {bottom}"))
    }

    fn refused_reversal(&self, from: u64, to: u64) -> Option<String> {
        match (self.standing.reversed, self.standing.taped.last()) {
            (None, _) => Some("the turn has not come".to_owned()),
            (_, None) => Some("no tape is kept".to_owned()),
            (Some(down_to), Some(tape)) => (down_to != to || from >= to || tape.1 != to || tape.0 > from)
                .then(|| {
                    format!("steps down to {down_to} are reversed and the tape is of {}..{}", tape.0, tape.1)
                }),
        }
    }

    /// The working state is in an unknown condition.
    pub fn lose(&mut self) {
        self.standing.live = None;
    }

    /// The working state is the one before this step again.
    pub fn brought_back(&mut self, step: u64) {
        self.standing.live = Some(step);
    }

    /// This was done: the next action, or a part of it as [`part_of`] gives it. Returns whether it was all of it.
    pub fn did(&mut self, part: Action) -> bool {
        let Standing { live, reversed, taped } = &mut self.standing;
        match part {
            Action::Advance { to, .. } => *live = Some(to),
            Action::Record { from, to } => {
                *live = Some(to);
                match taped.last_mut() {
                    // Ranges that touch are one: whole-run tapes stay one entry.
                    Some(range) if range.1 == from => range.1 = to,
                    _ => taped.push((from, to)),
                }
            }
            Action::Reverse { from, .. } => {
                if let Some(range) = taped.last_mut() {
                    range.1 = from;
                    if range.0 >= from {
                        taped.pop();
                    }
                }
                *reversed = Some(from);
            }
            Action::Load { step, .. } => *live = Some(step),
            Action::Turn => *reversed = self.schedule.steps(),
            Action::Store { .. } | Action::Drop { .. } => {}
        }
        self.next = self.next.and_then(|whole| rest_of(whole, part));
        self.next.is_none()
    }

    /// The loop ended by itself before this step: nothing is left of the action that is under way.
    pub fn end(&mut self, steps: u64) -> Result<(), Error> {
        self.schedule.end(steps)?;
        self.next = None;
        Ok(())
    }

    /// Is everything reversed, now that no action is left? What is missing otherwise.
    pub fn finish(&self) -> Result<(), String> {
        match self.standing.reversed {
            Some(0) => Ok(()),
            Some(step) => Err(format!("steps 0..{step} are not reversed")),
            None => Err("the turn never came".to_owned()),
        }
    }
}

/// How many steps an action runs or reverses.
pub fn steps_of(action: Action) -> u64 {
    match action {
        Action::Advance { from, to } | Action::Record { from, to } | Action::Reverse { from, to } => {
            to.saturating_sub(from)
        }
        Action::Store { .. } | Action::Load { .. } | Action::Drop { .. } | Action::Turn => 0,
    }
}

/// The part of an action that is done first, of at most so many steps: its first ones, or the last ones of a reversal.
pub fn part_of(action: Action, most: u64) -> Action {
    match action {
        Action::Advance { from, to } => Action::Advance { from, to: to.min(from.saturating_add(most)) },
        Action::Record { from, to } => Action::Record { from, to: to.min(from.saturating_add(most)) },
        Action::Reverse { from, to } => Action::Reverse { from: from.max(to.saturating_sub(most)), to },
        other => other,
    }
}

/// What is left of an action after a part of it.
fn rest_of(whole: Action, part: Action) -> Option<Action> {
    match (whole, part) {
        (Action::Advance { to, .. }, Action::Advance { to: at, .. }) if at < to => {
            Some(Action::Advance { from: at, to })
        }
        (Action::Record { to, .. }, Action::Record { to: at, .. }) if at < to => {
            Some(Action::Record { from: at, to })
        }
        (Action::Reverse { from, .. }, Action::Reverse { from: at, .. }) if at > from => {
            Some(Action::Reverse { from, to: at })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_schedule::{Online, Revolve, StoreAll};

    use super::*;

    /// Follows a schedule in parts of so many steps and returns what was done.
    fn follow<S: Schedule>(mut driver: Driver<S>, most: u64) -> (u64, u64) {
        let (mut forward, mut reversed) = (0, 0);
        while let Some(action) = driver.next_action() {
            let part = part_of(action, most);
            driver.check(part).unwrap();
            match part {
                Action::Reverse { .. } => reversed += steps_of(part),
                _ => forward += steps_of(part),
            }
            driver.did(part);
            assert!(driver.standing().is_possible(driver.steps()), "{:?}", driver.standing());
        }
        driver.finish().unwrap();
        (forward, reversed)
    }

    #[test]
    fn parts_of_any_length_do_the_same() {
        let whole = follow(Driver::new(Revolve::new(100, 4).unwrap()), u64::MAX);
        for most in [1, 2, 3, 7, 100] {
            assert_eq!(follow(Driver::new(Revolve::new(100, 4).unwrap()), most), whole);
            assert_eq!(follow(Driver::new(StoreAll::new(100).unwrap()), most), (100, 100));
        }
    }

    #[test]
    fn a_driver_that_is_resumed_from_its_standing_continues() {
        let mut driver = Driver::new(Revolve::new(20, 3).unwrap());
        let mut seen = 0;
        while let Some(action) = driver.next_action() {
            driver.did(part_of(action, 2));
            seen += 1;
            if seen % 5 == 0 {
                driver = Driver::resumed(driver.schedule().clone(), driver.standing().clone(), driver.rest());
            }
        }
        driver.finish().unwrap();
    }

    #[test]
    fn a_loop_that_ends_by_itself_leaves_nothing_of_its_action() {
        let mut driver = Driver::new(Online::new(3).unwrap());
        while let Some(action) = driver.next_action() {
            driver.check(action).unwrap();
            match action {
                Action::Advance { from, to } if driver.steps().is_none() && to > 17 => {
                    driver.end(17).unwrap();
                    driver.did(Action::Advance { from, to: 17 });
                }
                other => {
                    driver.did(other);
                }
            }
        }
        assert_eq!(driver.steps(), Some(17));
        driver.finish().unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let mut driver = Driver::new(StoreAll::new(10).unwrap());
        let why = |driver: &Driver<StoreAll>, action| driver.check(action).unwrap_err().why;
        assert_eq!(why(&driver, Action::Advance { from: 3, to: 4 }), "the state is the one before step 0");
        assert_eq!(
            why(&driver, Action::Advance { from: 0, to: 11 }),
            "there is nothing to run from step 10 on"
        );
        assert_eq!(why(&driver, Action::Turn), "the state is the one before step 0");
        assert_eq!(why(&driver, Action::Reverse { from: 0, to: 1 }), "the turn has not come");
        driver.did(Action::Record { from: 0, to: 10 });
        driver.did(Action::Turn);
        assert_eq!(why(&driver, Action::Turn), "it has come before");
        assert_eq!(
            why(&driver, Action::Reverse { from: 0, to: 9 }),
            "steps down to 10 are reversed and the tape is of 0..10"
        );
        assert_eq!(driver.finish(), Err("steps 0..10 are not reversed".to_owned()));
        driver.did(Action::Reverse { from: 0, to: 10 });
        assert_eq!(why(&driver, Action::Reverse { from: 0, to: 1 }), "no tape is kept");
    }
}
