//! Where a run stands, as a position: the path of steps to the loop that is being driven, and back.
//!
//! Children are the numbers of steps in their list; a branch is a step around those of the side that was taken.

use ebbtide_checkpoint::{Position, Step as PathStep};

use crate::gradient::run::Run;
use crate::gradient::steps::Step;

impl Run<'_> {
    /// The position of the whole run, which is that of its results.
    pub(super) fn whole(&self) -> Position {
        Position::root().then(0, &*self.variant.source.name)
    }

    /// Where the run stands; `None` if it has no such step.
    pub(super) fn position(&self) -> Option<Position> {
        let mut position = self.whole();
        let mut steps = &self.variant.steps.steps[..];
        for at in &self.at {
            let step = steps.get(*at)?;
            let child = u32::try_from(*at).ok()?;
            position = match self.iteration(step) {
                Some(iteration) => position.then_in_loop(child, name(step), iteration),
                None => position.then(child, name(step)),
            };
            steps = match step {
                Step::If { condition, then, otherwise } => {
                    let taken = self.frame.scalars.locals[condition.index()] != 0;
                    if taken { then } else { otherwise }
                }
                _ => &[],
            };
        }
        Some(position)
    }
}

impl Run<'_> {
    /// The iteration that a loop stands before on its way forward, or down to which it is reversed.
    fn iteration(&self, step: &Step) -> Option<u64> {
        let standing = |id| self.sweeps.get(id).map(|driven| driven.driver.standing());
        match step {
            Step::Forward(sweep) => standing(&sweep.id)?.live,
            Step::Backward(id, _) => standing(id)?.reversed,
            _ => None,
        }
    }
}

/// The position as far as it does not depend on how far loops are.
pub(super) fn without_iterations(position: &Position) -> Position {
    position.steps().iter().map(|step| PathStep { iteration: None, ..step.clone() }).collect()
}

/// The numbers of the steps on the way to a position.
pub(super) fn path(position: &Position) -> Vec<usize> {
    position.steps().iter().skip(1).map(|step| step.child as usize).collect()
}

fn name(step: &Step) -> String {
    match step {
        Step::Run(_) => "run".to_string(),
        Step::Forward(sweep) => format!("forward loop {}", sweep.id.index()),
        Step::Backward(id, _) => format!("backward loop {}", id.index()),
        Step::Host(..) => "host".to_string(),
        Step::For { .. } => "for".to_string(),
        Step::If { .. } => "if".to_string(),
    }
}
