use ebbtide_schedule::Action;

use crate::Illegal;

/// Why a sweep stopped. `E` is the error of the stepper.
///
/// Whatever the reason, the sweep keeps its states, its tape and its place in the schedule: once the cause is
/// gone, [`Sweep::run`](crate::Sweep::run) continues; or ends in [`Lost`](Error::Lost), where the working state was lost and no
/// stored state leads to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error<E> {
    /// The stepper failed.
    #[error("`{action}` failed: {source}")]
    Stepper {
        /// What it was asked to do, with the steps.
        action: Action,
        /// What it said.
        source: E,
    },
    /// A place could not keep or give back a state.
    #[error("`{action}` failed: {source}")]
    Snapshot {
        /// What was to be done.
        action: Action,
        /// What went wrong.
        source: ebbtide_snapshot::Error,
    },
    /// The stepper could not save or restore what a durable run keeps of it.
    #[error("saving or restoring the frontier failed: {0}")]
    Frontier(#[source] E),
    /// The directory of a durable run could not be read or written, or belongs to something else.
    #[error(transparent)]
    Durable(#[from] ebbtide_snapshot::Error),
    /// An earlier call failed while it took the run up.
    #[error("the run could not be taken up before: open it again, with a stepper at its beginning")]
    TakenUp,
    /// The working state was lost in an earlier failure and no stored state stands at or before `step`.
    #[error("cannot go on: the state before step {step} is lost, and no state at or before it is stored")]
    Lost {
        /// The step whose state is needed.
        step: u64,
    },
    /// The schedule asks for something that makes no sense where the sweep stands.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    /// The schedule is over, but not the sweep.
    #[error("the schedule ended early: {why}")]
    Unfinished {
        /// What is missing.
        why: String,
    },
    /// The schedule refused.
    #[error(transparent)]
    Schedule(#[from] ebbtide_schedule::Error),
    /// A stop was asked for.
    #[error("stopped on request before step {step}; run again to go on")]
    Cancelled {
        /// The step at which the sweep stands: forward, or on its way back.
        step: u64,
    },
}
