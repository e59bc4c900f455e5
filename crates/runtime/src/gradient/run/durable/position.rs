//! Where a run stands, as a position: the path of steps to the loop that is being driven, and back.
//!
//! Children are the numbers of steps in their list; a branch is a step around those of the side that was taken.

use ebbtide_checkpoint::Position;

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
            position = position.then(u32::try_from(*at).ok()?, name(step));
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
