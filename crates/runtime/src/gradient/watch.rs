//! Who watches a gradient run, or may stop it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ebbtide_schedule::Action;
use ebbtide_sweep::{Cancel, Pace, part_of, steps_of};

use crate::gradient::plan::Plan;
use crate::gradient::ran::Ran;

/// How far a gradient run is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it has done.
    pub ran: Ran,
    /// How many iterations it will have run and reversed in the end, those that are run again included; fewer where a branch
    /// with a loop is not taken. `None` where the number of iterations of a loop is not known before it ends.
    pub passes: Option<u64>,
    /// The time since the launch began.
    pub elapsed: Duration,
    /// What had been done when the launch began: iterations that a durable run finished earlier.
    found: u64,
}

impl Progress {
    /// About how long the rest will take, if iterations continue to take as long as before; `None` before the first
    /// iteration is finished, and where it is not known how much there is.
    pub fn remaining(&self) -> Option<Duration> {
        let done = passes(&self.ran);
        let here = done.checked_sub(self.found).filter(|here| *here > 0)?;
        let left = self.passes?.saturating_sub(done);
        Duration::try_from_secs_f64(self.elapsed.as_secs_f64() * left as f64 / here as f64).ok()
    }

    /// The part of the work that is done, from 0 to 1, where it is known how much there is.
    pub fn fraction(&self) -> Option<f64> {
        let done = passes(&self.ran);
        self.passes.map(|passes| if passes == 0 { 1.0 } else { (done as f64 / passes as f64).min(1.0) })
    }
}

fn passes(ran: &Ran) -> u64 {
    ran.advanced + ran.recorded + ran.reversed
}

/// Receives the progress of a run.
pub type Observer = dyn Fn(&Progress) + Send + Sync;

/// An observer is told something at most this often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// One run that is watched: its long actions are done part by part.
pub(crate) struct Watch<'a> {
    observer: Option<&'a Observer>,
    cancel: Option<&'a Cancel>,
    passes: Option<u64>,
    pace: Pace,
    last: Instant,
    began: Instant,
    /// The iterations that were done when it began.
    found: u64,
}

impl<'a> Watch<'a> {
    pub fn new(observer: Option<&'a Observer>, cancel: Option<&'a Cancel>, plan: &Plan) -> Watch<'a> {
        let now = Instant::now();
        let (passes, pace) = (plan.passes(), Pace::new());
        Watch { observer, cancel, passes, pace, last: now, began: now, found: 0 }
    }

    /// A durable run continues after so much.
    pub fn found(&mut self, ran: &Ran) {
        self.found = passes(ran);
    }

    /// A part of an action that takes no longer than one wants to wait.
    pub fn part(&mut self, action: Action) -> Action {
        match steps_of(action) {
            0 => action,
            steps => part_of(action, self.pace.portion(0, steps)),
        }
    }

    /// Was a part run whose time says how long the next one may be, or was it not looked at for a while?
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
            observer(&Progress {
                ran: *ran,
                passes: self.passes,
                elapsed: self.began.elapsed(),
                found: self.found,
            });
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(Cancel::is_cancelled)
    }
}

/// Runs what cannot be done part by part, because it is one segment; the observer is told from another thread how many
/// iterations of its outermost loop are finished.
pub(crate) fn observed<T>(observer: &Observer, done: &AtomicI64, run: impl FnOnce() -> T) -> T {
    let (end, ended) = mpsc::channel::<()>();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(BETWEEN_LOOKS) == Err(mpsc::RecvTimeoutError::Timeout) {
                let advanced = done.load(Ordering::Relaxed).max(0) as u64;
                let ran = Ran { advanced, ..Ran::default() };
                observer(&Progress { ran, passes: None, elapsed: began.elapsed(), found: 0 });
            }
        });
        let result = run();
        drop(end);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_per_iteration_as_what_was_done_in_this_launch() {
        let ran = Ran { advanced: 60, recorded: 10, reversed: 10, ..Ran::default() };
        let elapsed = Duration::from_secs(30);
        let progress = |passes, found| Progress { ran, passes, elapsed, found };
        assert_eq!(progress(Some(200), 0).remaining(), Some(Duration::from_secs(45)));
        // Twenty of these iterations were done by an earlier process.
        assert_eq!(progress(Some(200), 20).remaining(), Some(Duration::from_secs(60)));
        assert_eq!(progress(Some(80), 0).remaining(), Some(Duration::ZERO));
        assert_eq!(progress(Some(200), 80).remaining(), None);
        assert_eq!(progress(None, 0).remaining(), None);
    }
}
