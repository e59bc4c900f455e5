use std::time::{Duration, Instant};

/// How many steps to run in one go, so that the sweep looks up (for a stop, for an observer, for a durable
/// frontier) a few dozen times per second, whatever a step costs.
///
/// The clock is read only where a range is longer than the present portion; short ranges cost nothing.
#[derive(Debug)]
pub struct Pace {
    portion: u64,
    started: Option<Instant>,
}

const TARGET: Duration = Duration::from_millis(20);

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// A pace that does not know yet what a step costs.
    pub fn new() -> Self {
        Self { portion: 1, started: None }
    }

    /// The end of the next portion of `from..to`.
    pub fn portion(&mut self, from: u64, to: u64) -> u64 {
        if to.saturating_sub(from) <= self.portion {
            self.started = None;
            return to;
        }
        self.started = Some(Instant::now());
        from + self.portion
    }

    /// Is a portion under way whose time will say how long the next one may be?
    pub fn is_timed(&self) -> bool {
        self.started.is_some()
    }

    /// The portion has been run.
    pub fn ran(&mut self) {
        if let Some(started) = self.started.take() {
            let took = started.elapsed();
            if took < TARGET / 2 {
                self.portion = self.portion.saturating_mul(2);
            } else if took > TARGET * 2 {
                self.portion = (self.portion / 2).max(1);
            }
        }
    }
}
