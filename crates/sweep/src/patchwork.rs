//! The rest of an interrupted run that may use the disk.
//!
//! Each gap between two states that survived is reversed by a two-tier schedule of its own, last gap first, with all
//! memory slots and the disk slots that survivors do not take. Not optimal as a whole: memory that one gap leaves free
//! is not lent to the next, since gaps are never open at the same time.

use std::collections::VecDeque;

use ebbtide_schedule::{
    Action, AnySchedule, Disk, Error, Multistage, Options, Progress, Rest, Schedule, Slot, Tier,
};
use ebbtide_snapshot::Budget;

/// What a durable run carries out: the schedule that it began with, or a plan for the rest.
pub(crate) enum Plan {
    Whole(AnySchedule),
    InMemory(Rest),
    WithDisk(Patchwork),
}

impl Iterator for Plan {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        match self {
            Plan::Whole(schedule) => schedule.next(),
            Plan::InMemory(schedule) => schedule.next(),
            Plan::WithDisk(schedule) => schedule.next(),
        }
    }
}

impl Schedule for Plan {
    fn steps(&self) -> Option<u64> {
        match self {
            Plan::Whole(schedule) => schedule.steps(),
            Plan::InMemory(schedule) => schedule.steps(),
            Plan::WithDisk(schedule) => Some(schedule.steps),
        }
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        match self {
            Plan::Whole(schedule) => schedule.end(steps),
            Plan::InMemory(schedule) => schedule.end(steps),
            Plan::WithDisk(schedule) if schedule.steps == steps => Ok(()),
            Plan::WithDisk(schedule) => {
                Err(Error::WrongEnd { announced: steps, first: schedule.steps, last: schedule.steps })
            }
        }
    }
}

pub(crate) struct Patchwork {
    steps: u64,
    budget: Budget,
    turned: bool,
    /// The gaps that are still to be reversed, the next one last.
    gaps: Vec<Gap>,
    /// The first disk slot that no survivor takes.
    free: usize,
    queue: VecDeque<Action>,
    inside: Option<(Gap, Multistage)>,
}

#[derive(Clone, Copy)]
struct Gap {
    from: u64,
    to: u64,
    slot: Slot,
}

impl Patchwork {
    /// A plan over survivors on disk, one for each step at most; there must be one before step 0.
    pub(crate) fn new(
        steps: u64,
        survivors: &[(u64, Slot)],
        progress: Progress,
        budget: Budget,
    ) -> Result<Self, Error> {
        let (end, turned) = match progress {
            Progress::Forward => (steps, false),
            Progress::Reversed(step) => (step, true),
        };
        if end > steps {
            return Err(Error::CannotReplan { why: "more steps are reversed than the loop has" });
        }
        let mut survivors = survivors.to_vec();
        survivors.sort_unstable_by_key(|survivor| survivor.0);
        if survivors.first().is_none_or(|first| first.0 > 0) {
            return Err(Error::CannotReplan { why: "the state before step 0 did not survive" });
        }
        let free = survivors.iter().map(|(_, slot)| slot.index + 1).max().unwrap_or(0);
        let mut plan =
            Self { steps, budget, turned, gaps: Vec::new(), free, queue: VecDeque::new(), inside: None };
        for (place, &(from, slot)) in survivors.iter().enumerate() {
            let to = survivors.get(place + 1).map_or(end, |next| next.0.min(end));
            // A state at the end itself is of use only if the turn is still to come there.
            if from < to || (from == end && !turned) {
                plan.gaps.push(Gap { from, to, slot });
            } else {
                plan.queue.push_back(Action::Drop { slot });
            }
        }
        Ok(plan)
    }

    /// Plans the next gap; `false` if there is none.
    fn enter(&mut self) -> bool {
        let Some(gap) = self.gaps.pop() else { return false };
        let disk = Disk {
            slots: self.budget.disk_slots.saturating_sub(self.gaps.len() + 1),
            write_cost: self.budget.disk_cost.into(),
            read_cost: self.budget.disk_cost.into(),
        };
        let options = Options::new().block(self.budget.block.max(1));
        // With a slot and a block of at least one, every length can be planned.
        let Ok(plan) = Multistage::with(gap.to - gap.from, self.budget.slots.max(1), disk, options) else {
            return false;
        };
        self.queue.push_back(Action::Load { step: gap.from, slot: gap.slot });
        self.inside = Some((gap, plan));
        true
    }

    /// An action of the plan of a gap, where it belongs in the run.
    fn moved(&self, action: Action, gap: Gap) -> Action {
        let slot = |slot: Slot| match slot.tier {
            Tier::Memory => slot,
            Tier::Disk => Slot { index: slot.index + self.free, ..slot },
        };
        let at = |step: u64| step + gap.from;
        match action {
            Action::Advance { from, to } => Action::Advance { from: at(from), to: at(to) },
            Action::Record { from, to } => Action::Record { from: at(from), to: at(to) },
            Action::Reverse { from, to } => Action::Reverse { from: at(from), to: at(to) },
            Action::Store { step, slot: s } => Action::Store { step: at(step), slot: slot(s) },
            Action::Load { step, slot: s } => Action::Load { step: at(step), slot: slot(s) },
            Action::Drop { slot: s } => Action::Drop { slot: slot(s) },
            Action::Turn => Action::Turn,
        }
    }
}

impl Iterator for Patchwork {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        loop {
            if let Some(action) = self.queue.pop_front() {
                return Some(action);
            }
            match &mut self.inside {
                None => {
                    if !self.enter() {
                        return None;
                    }
                }
                Some((gap, plan)) => {
                    let gap = *gap;
                    match plan.next() {
                        // Every plan of its own has a turn; the run has one.
                        Some(Action::Turn) if self.turned => {}
                        Some(action) => {
                            self.turned |= action == Action::Turn;
                            return Some(self.moved(action, gap));
                        }
                        None => {
                            self.inside = None;
                            self.queue.push_back(Action::Drop { slot: gap.slot });
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patchwork_reverses_what_is_left_exactly_once() {
        let disk = |index| Slot { tier: Tier::Disk, index };
        let budget = Budget { slots: 2, block: 1, disk_slots: 6, disk_cost: 1 };
        let mut plans = 0;
        for steps in 1..30_u64 {
            for middle in 1..=steps {
                for reversed in (0..=steps).map(Progress::Reversed).chain([Progress::Forward]) {
                    let survivors = [(0, disk(0)), (middle, disk(1)), (middle / 2, disk(4))];
                    let survivors = if middle < 2 { &survivors[..2] } else { &survivors[..] };
                    let plan = Patchwork::new(steps, survivors, reversed, budget).unwrap();
                    check(steps, survivors, reversed, plan);
                    plans += 1;
                }
            }
        }
        assert!(plans > 8000);
    }

    /// Carries the plan out on paper: nothing loaded that is not there, every step reversed once and in order.
    fn check(steps: u64, survivors: &[(u64, Slot)], progress: Progress, plan: Patchwork) {
        let mut held: Vec<(u64, Slot)> = survivors.to_vec();
        let (mut live, mut tape) = (None, None);
        let (mut reversed, mut turned) = match progress {
            Progress::Forward => (steps, false),
            Progress::Reversed(step) => (step, true),
        };
        for action in plan {
            match action {
                Action::Load { step, slot } => {
                    assert!(held.contains(&(step, slot)), "{action}");
                    live = Some(step);
                }
                Action::Store { step, slot } => {
                    assert!(live == Some(step) && held.iter().all(|state| state.1 != slot), "{action}");
                    held.push((step, slot));
                }
                Action::Drop { slot } => {
                    assert!(held.iter().any(|state| state.1 == slot), "{action}");
                    held.retain(|state| state.1 != slot);
                }
                Action::Advance { from, to } => {
                    assert!(live == Some(from) && from < to && to <= reversed, "{action}");
                    live = Some(to);
                }
                Action::Record { from, to } => {
                    assert!(live == Some(from) && to <= reversed, "{action}");
                    (live, tape) = (Some(to), Some((from, to)));
                }
                Action::Reverse { from, to } => {
                    assert!(turned && to == reversed && tape.take() == Some((from, to)), "{action}");
                    reversed = from;
                }
                Action::Turn => {
                    assert!(!turned && live == Some(steps));
                    turned = true;
                }
            }
            assert!(held.iter().filter(|state| state.1.tier == Tier::Memory).count() <= 2);
            assert!(held.iter().filter(|state| state.1.tier == Tier::Disk).count() <= 6);
        }
        assert!(turned && reversed == 0 && held.is_empty(), "{steps} {survivors:?} {progress:?}: {held:?}");
    }
}
