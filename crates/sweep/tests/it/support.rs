use std::convert::Infallible;
use std::ops::Range;

use ebbtide_schedule::{Action, Error, Schedule, Slot, Tier};
use ebbtide_sweep::Stepper;

/// A schedule written out by hand.
pub struct Script {
    pub steps: u64,
    pub actions: std::vec::IntoIter<Action>,
}

pub fn script(steps: u64, actions: impl Into<Vec<Action>>) -> Script {
    Script { steps, actions: actions.into().into_iter() }
}

impl Iterator for Script {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        self.actions.next()
    }
}

impl Schedule for Script {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, _steps: u64) -> Result<(), Error> {
        Ok(())
    }
}

pub fn memory(index: usize) -> Slot {
    Slot { tier: Tier::Memory, index }
}

/// A chain whose steps depend on their number, so that a wrong linearisation point shows: x ← x² / 4 + sin(t + x).
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    pub x: f64,
    pub tape: Vec<(u64, f64)>,
    pub dx: f64,
    /// The number of times that any step was run.
    pub executed: u64,
    /// Where the loop ends by itself.
    pub ends_at: u64,
}

impl Chain {
    pub fn new() -> Self {
        Self { x: 0.7, tape: Vec::new(), dx: f64::NAN, executed: 0, ends_at: u64::MAX }
    }

    /// The derivative of `steps` steps, with nothing clever in between.
    pub fn plain_gradient(steps: u64) -> f64 {
        let mut chain = Self::new();
        let Ok(()) = chain.record(0..steps);
        let Ok(()) = chain.turn();
        let Ok(()) = chain.reverse(0..steps);
        chain.dx
    }
}

impl Stepper for Chain {
    type State = [f64; 1];
    type Error = Infallible;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for t in steps {
            self.x = self.x * self.x / 4.0 + (t as f64 + self.x).sin();
            self.executed += 1;
        }
        Ok(())
    }

    fn record(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for t in steps {
            self.tape.push((t, self.x));
            self.advance(t..t + 1)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Infallible> {
        self.dx = 1.0;
        Ok(())
    }

    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        for t in steps.rev() {
            let (taped, x) = self.tape.pop().expect("a step is reversed after it was recorded");
            assert_eq!(taped, t, "the tape is of another step");
            self.dx *= x / 2.0 + (t as f64 + x).cos();
        }
        Ok(())
    }

    fn save(&self, state: &mut [f64; 1]) -> Result<(), Infallible> {
        *state = [self.x];
        Ok(())
    }

    fn restore(&mut self, state: &[f64; 1]) -> Result<(), Infallible> {
        self.x = state[0];
        Ok(())
    }

    fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Infallible> {
        let end = steps.end.min(self.ends_at);
        self.advance(steps.start..end)?;
        Ok(end)
    }

    fn tape_bytes(&self) -> u64 {
        size_of_val(self.tape.as_slice()) as u64
    }
}

/// What a model with another one in its first field leaves to that: to run steps, or to be kept.
macro_rules! in_the_model_within {
    (run) => {
        fn record(&mut self, steps: std::ops::Range<u64>) -> Result<(), Self::Error> {
            self.0.record(steps)
        }
        fn turn(&mut self) -> Result<(), Self::Error> {
            self.0.turn()
        }
        fn reverse(&mut self, steps: std::ops::Range<u64>) -> Result<(), Self::Error> {
            self.0.reverse(steps)
        }
        fn save(&self, state: &mut ebbtide_snapshot::State) -> Result<(), Self::Error> {
            self.0.save(state)
        }
        fn restore(&mut self, state: &ebbtide_snapshot::State) -> Result<(), Self::Error> {
            self.0.restore(state)
        }
    };
    (keep) => {
        fn identity(&self) -> ebbtide_snapshot::Identity {
            self.0.identity()
        }
        fn save_adjoint(&self, adjoint: &mut ebbtide_snapshot::State) -> Result<(), Self::Error> {
            self.0.save_adjoint(adjoint)
        }
        fn restore_adjoint(&mut self, adjoint: &ebbtide_snapshot::State) -> Result<(), Self::Error> {
            self.0.restore_adjoint(adjoint)
        }
    };
}
pub(crate) use in_the_model_within;
