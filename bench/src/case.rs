//! One thing to measure: something to run, and what it found.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::Result;
use crate::reference::Reference;

/// What a run found: the loss, where it gives one, and the length of the gradient (or of the end state).
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub loss: Option<f64>,
    pub norm: f64,
}

/// Something to run again and again.
pub struct Case {
    /// Puts the arguments back; not timed.
    pub reset: Box<dyn FnMut() -> Result<()>>,
    pub run: Box<dyn FnMut() -> Result<()>>,
    pub answer: Box<dyn FnMut() -> Result<Answer>>,
}

/// What counts as time.
pub enum Clock {
    Wall(Instant),
    /// The time on processors, the same on one thread but for what other processes take.
    Processor(Rc<Reference>),
}

impl Clock {
    /// The clock for a measurement on so many threads.
    pub fn of(threads: usize, reference: &Rc<Reference>) -> Clock {
        if threads == 1 { Clock::Processor(reference.clone()) } else { Clock::Wall(Instant::now()) }
    }

    fn now(&self) -> Duration {
        match self {
            Clock::Wall(start) => start.elapsed(),
            Clock::Processor(reference) => reference.processor_time(),
        }
    }
}

/// The best of several rounds in which all take turns, so that a busy machine slows them alike.
pub fn take_turns(cases: &mut [&mut Case], clock: &Clock, at_least: Duration) -> Result<Vec<Duration>> {
    let mut best = vec![Duration::MAX; cases.len()];
    let begun = Instant::now();
    for round in 0.. {
        for (case, best) in cases.iter_mut().zip(&mut best) {
            (case.reset)()?;
            let start = clock.now();
            (case.run)()?;
            *best = (*best).min(clock.now() - start);
        }
        if round > 0 && begun.elapsed() > at_least {
            break;
        }
    }
    Ok(best)
}

/// The length of a vector.
pub fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}
