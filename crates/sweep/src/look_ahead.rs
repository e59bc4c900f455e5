use std::collections::VecDeque;

use ebbtide_schedule::{Action, Error, Schedule, Slot, Tier};

/// How many actions to look ahead for states that will be read from disk.
const LOOK_AHEAD: usize = 256;

/// A schedule whose coming loads from disk are seen early.
pub(crate) struct LookAhead<S> {
    schedule: S,
    /// Is there a disk that can read ahead?
    disk: bool,
    /// Actions taken from the schedule and not yet given.
    ahead: VecDeque<Action>,
    /// The loads from disk among them.
    coming_loads: VecDeque<(Slot, u64)>,
}

impl<S: Schedule> LookAhead<S> {
    pub(crate) fn new(schedule: S) -> Self {
        Self { schedule, disk: false, ahead: VecDeque::new(), coming_loads: VecDeque::new() }
    }

    /// From here on there is a disk.
    pub(crate) fn watch_disk(&mut self) {
        self.disk = true;
    }

    /// The load from disk that comes next, and the step of its state.
    pub(crate) fn coming_load(&self) -> Option<(Slot, u64)> {
        self.coming_loads.front().copied()
    }
}

impl<S: Schedule> Iterator for LookAhead<S> {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        // An online schedule does not know what comes next before it is told where the loop ends.
        if !self.disk || self.schedule.steps().is_none() {
            return self.ahead.pop_front().or_else(|| self.schedule.next());
        }
        while self.ahead.len() < LOOK_AHEAD
            && let Some(action) = self.schedule.next()
        {
            self.coming_loads.extend(disk_load(action));
            self.ahead.push_back(action);
        }
        let action = self.ahead.pop_front();
        if action.and_then(disk_load).is_some() {
            self.coming_loads.pop_front();
        }
        action
    }
}

impl<S: Schedule> Schedule for LookAhead<S> {
    fn steps(&self) -> Option<u64> {
        self.schedule.steps()
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        self.schedule.end(steps)
    }
}

fn disk_load(action: Action) -> Option<(Slot, u64)> {
    match action {
        Action::Load { step, slot } if slot.tier == Tier::Disk => Some((slot, step)),
        _ => None,
    }
}
