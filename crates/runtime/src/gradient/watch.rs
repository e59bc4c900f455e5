//! Who watches a gradient run, or may stop it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ebbtide_schedule::Action;
use ebbtide_sweep::{Cancel, Pace};

use crate::gradient::plan::Plan;
use crate::gradient::ran::Ran;

/// How far a gradient run is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it has done.
    pub ran: Ran,
    /// How many passes it will have run and reversed in the end, those that are run again included; fewer where a branch
    /// with a loop is not taken. `None` where the number of passes of a loop is not known before it ends.
    pub passes: Option<u64>,
}

impl Progress {
    /// The part of the work that is done, from 0 to 1, where it is known how much there is.
    pub fn fraction(&self) -> Option<f64> {
        let done = passes(&self.ran);
        self.passes.map(|passes| if passes == 0 { 1.0 } else { (done as f64 / passes as f64).min(1.0) })
    }
}

fn passes(ran: &Ran) -> u64 {
    ran.advanced + ran.recorded + ran.reversed
}

/// Is told how far a run is.
pub type Observer = dyn Fn(&Progress) + Send + Sync;

/// An observer is told something at most so often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// One run that is watched: its long actions are done part by part.
pub(crate) struct Watch<'a> {
    observer: Option<&'a Observer>,
    cancel: Option<&'a Cancel>,
    passes: Option<u64>,
    pace: Pace,
    last: Instant,
}

impl<'a> Watch<'a> {
    pub fn new(observer: Option<&'a Observer>, cancel: Option<&'a Cancel>, plan: &Plan) -> Watch<'a> {
        Watch { observer, cancel, passes: plan.passes(), pace: Pace::new(), last: Instant::now() }
    }

    /// A part of an action that takes no longer than one wants to wait, and what is left of it.
    pub fn part(&mut self, action: Action) -> (Action, Option<Action>) {
        let pace = &mut self.pace;
        match action {
            Action::Advance { from, to } => {
                let at = pace.portion(from, to);
                (Action::Advance { from, to: at }, (at < to).then_some(Action::Advance { from: at, to }))
            }
            Action::Record { from, to } => {
                let at = pace.portion(from, to);
                (Action::Record { from, to: at }, (at < to).then_some(Action::Record { from: at, to }))
            }
            // From its end.
            Action::Reverse { from, to } => {
                let at = to - (pace.portion(from, to) - from);
                (Action::Reverse { from: at, to }, (at > from).then_some(Action::Reverse { from, to: at }))
            }
            other => (other, None),
        }
    }

    /// Was a part run whose time says how long the next one may be, or has nobody looked for a while?
    pub fn is_due(&mut self) -> bool {
        self.pace.is_timed() || self.last.elapsed() >= BETWEEN_LOOKS
    }

    /// Nothing is under way.
    pub fn look(&mut self, ran: &Ran) {
        self.pace.ran();
        if self.last.elapsed() >= BETWEEN_LOOKS {
            self.tell(ran);
        }
    }

    /// The run has ended: that was all there was.
    pub fn end(&mut self, ran: &Ran) {
        self.passes = self.passes.map(|_| passes(ran));
        self.tell(ran);
    }

    fn tell(&mut self, ran: &Ran) {
        self.last = Instant::now();
        if let Some(observer) = self.observer {
            observer(&Progress { ran: *ran, passes: self.passes });
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(Cancel::is_cancelled)
    }
}

/// Runs what cannot be done part by part, because it is one segment; the observer is told from another thread how many
/// passes of its outermost loop are finished.
pub(crate) fn observed<T>(observer: &Observer, done: &AtomicI64, run: impl FnOnce() -> T) -> T {
    let (end, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(BETWEEN_LOOKS) == Err(mpsc::RecvTimeoutError::Timeout) {
                let advanced = done.load(Ordering::Relaxed).max(0) as u64;
                observer(&Progress { ran: Ran { advanced, ..Ran::default() }, passes: None });
            }
        });
        let result = run();
        drop(end);
        result
    })
}
