use std::ops::Range;
use std::sync::{Arc, Mutex};

use ebbtide_schedule::{Action, Online, Revolve, StoreAll, Tier};
use ebbtide_snapshot::{Error as SnapshotError, Memory, Place};
use ebbtide_sweep::{Cancel, Error, Event, Stepper, Sweep};

use crate::support::{Chain, memory, script};

/// A chain of which the n-th call fails, once, and spoils the working state as the contract allows.
struct Flaky {
    chain: Chain,
    calls: std::cell::Cell<u64>,
    fails_at: u64,
}

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("call {0} failed")]
struct Failed(u64);

impl Flaky {
    fn new(fails_at: u64, ends_at: u64) -> Self {
        Self { chain: Chain { ends_at, ..Chain::new() }, calls: 0.into(), fails_at }
    }

    fn call(&self) -> Result<(), Failed> {
        let call = self.calls.get();
        self.calls.set(call + 1);
        if call == self.fails_at { Err(Failed(call)) } else { Ok(()) }
    }

    fn spoiling_call(&mut self) -> Result<(), Failed> {
        self.call().inspect_err(|_| self.chain.x = f64::NAN)
    }
}

impl Stepper for Flaky {
    type State = [f64; 1];
    type Error = Failed;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Failed> {
        self.spoiling_call()?;
        let Ok(()) = self.chain.advance(steps);
        Ok(())
    }
    fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Failed> {
        self.spoiling_call()?;
        let Ok(end) = self.chain.advance_online(steps);
        Ok(end)
    }
    fn record(&mut self, steps: Range<u64>) -> Result<(), Failed> {
        self.spoiling_call()?;
        let Ok(()) = self.chain.record(steps);
        Ok(())
    }
    fn turn(&mut self) -> Result<(), Failed> {
        self.spoiling_call()?;
        let Ok(()) = self.chain.turn();
        Ok(())
    }
    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Failed> {
        self.spoiling_call()?;
        let Ok(()) = self.chain.reverse(steps);
        Ok(())
    }
    fn save(&self, state: &mut [f64; 1]) -> Result<(), Failed> {
        *state = [f64::NAN];
        self.call()?;
        let Ok(()) = self.chain.save(state);
        Ok(())
    }
    fn restore(&mut self, state: &[f64; 1]) -> Result<(), Failed> {
        self.spoiling_call()?;
        let Ok(()) = self.chain.restore(state);
        Ok(())
    }
}

#[test]
fn a_sweep_goes_on_after_a_failure_of_any_call() {
    let steps = 12;
    let plain = Chain::plain_gradient(steps);
    let mut schedules = 0;
    for online in [false, true] {
        for fails_at in 0.. {
            let mut stepper = Flaky::new(fails_at, steps);
            let outcome = if online {
                run_twice(Sweep::new(Online::new(3).unwrap()), &mut stepper)
            } else {
                run_twice(Sweep::new(Revolve::new(steps, 3).unwrap()), &mut stepper)
            };
            match outcome {
                Err(message) => panic!("call {fails_at}: {message}"),
                Ok(failed) => {
                    assert_eq!(stepper.chain.dx.to_bits(), plain.to_bits(), "call {fails_at}");
                    if !failed {
                        assert!(fails_at > 30, "only {fails_at} calls were tried");
                        schedules += 1;
                        break;
                    }
                }
            }
        }
    }
    assert_eq!(schedules, 2);
}

/// Whether the first run failed, or why the second one did.
fn run_twice<S: ebbtide_schedule::Schedule>(
    mut sweep: Sweep<S, [f64; 1]>,
    stepper: &mut Flaky,
) -> Result<bool, String> {
    match sweep.run(stepper) {
        Ok(_) => Ok(false),
        Err(Error::Stepper { source, .. }) => {
            assert_eq!(source, Failed(stepper.fails_at));
            sweep.run(stepper).map(|_| true).map_err(|error| error.to_string())
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn the_error_names_the_action_and_carries_the_cause() {
    let mut stepper = Flaky::new(1, u64::MAX);
    let error = Sweep::new(Revolve::new(10, 3).unwrap()).run(&mut stepper).unwrap_err();
    assert_eq!(error.to_string(), "`advance 0..4` failed: call 1 failed");
    assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<Failed>()));
}

#[test]
fn without_a_stored_state_a_lost_one_is_an_error_that_says_so() {
    let mut stepper = Flaky::new(0, u64::MAX);
    let mut sweep = Sweep::new(StoreAll::new(10).unwrap());
    sweep.run(&mut stepper).unwrap_err();
    let error = sweep.run(&mut stepper).unwrap_err();
    assert!(matches!(error, Error::Lost { step: 0 }), "{error}");
}

#[test]
fn a_cancelled_sweep_goes_on_where_it_stopped() {
    let cancel = Cancel::new();
    let mut sweep = Sweep::new(Revolve::new(30, 4).unwrap()).cancel_with(cancel.clone());
    let mut chain = Chain::new();
    let mut stops = 0;
    loop {
        match sweep.step(&mut chain) {
            Ok(true) => {
                cancel.cancel();
                stops += 1;
                assert!(matches!(sweep.run(&mut chain), Err(Error::Cancelled { .. })));
                cancel.reset();
            }
            Ok(false) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stops > 60);
    assert_eq!(chain.dx.to_bits(), Chain::plain_gradient(30).to_bits());
    assert_eq!(sweep.counters().repairs, 0);
}

#[test]
fn a_long_advance_can_be_stopped_in_its_middle() {
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let mut chain = Chain::new();
    let mut sweep = Sweep::new(script(u64::MAX, [Action::Advance { from: 0, to: u64::MAX }]))
        .cancel_with(cancel)
        .observe(move |progress| {
            if progress.counters.advanced > 100_000 {
                stop.cancel();
            }
        });
    let Err(Error::Cancelled { step }) = sweep.run(&mut chain) else { panic!("it was not stopped") };
    assert!(step > 100_000 && step < u64::MAX / 2);
}

/// Memory that loses what is in one slot.
struct Leaky(Memory<[f64; 1]>, Arc<Mutex<Option<usize>>>);

impl Place<[f64; 1]> for Leaky {
    fn begin(&mut self, slot: usize) -> Result<&mut [f64; 1], SnapshotError> {
        self.0.begin(slot)
    }
    fn commit(&mut self, slot: usize, step: u64) -> Result<(), SnapshotError> {
        self.0.commit(slot, step)
    }
    fn load(&mut self, slot: usize) -> Result<&[f64; 1], SnapshotError> {
        if *self.1.lock().unwrap() == Some(slot) {
            return Err(SnapshotError::EmptySlot { slot });
        }
        self.0.load(slot)
    }
    fn discard(&mut self, slot: usize) -> Result<(), SnapshotError> {
        self.0.discard(slot)
    }
    fn step(&self, slot: usize) -> Option<u64> {
        self.0.step(slot)
    }
    fn held(&self) -> Vec<(usize, u64)> {
        self.0.held()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

#[test]
fn a_state_that_cannot_be_read_is_computed_again() {
    for lost in 1..4 {
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let leaky = Leaky(Memory::new(), Arc::new(Mutex::new(Some(lost))));
        let mut chain = Chain::new();
        let counters = Sweep::new(Revolve::new(40, 4).unwrap())
            .with_place(Tier::Memory, leaky)
            .observe(move |progress| {
                if let Event::Repaired { step, from } = progress.event {
                    log.lock().unwrap().push((step, from));
                }
            })
            .run(&mut chain)
            .unwrap();
        assert_eq!(chain.dx.to_bits(), Chain::plain_gradient(40).to_bits());
        let events = events.lock().unwrap();
        assert!(!events.is_empty() && counters.repairs == events.len() as u64);
        assert!(events.iter().all(|&(step, from)| from < step));
    }
    // Without the first state there is nothing to begin with.
    let leaky = Leaky(Memory::new(), Arc::new(Mutex::new(Some(0))));
    let error =
        Sweep::new(Revolve::new(40, 4).unwrap()).with_place(Tier::Memory, leaky).run(&mut Chain::new());
    assert!(matches!(error, Err(Error::Snapshot { source: SnapshotError::EmptySlot { slot: 0 }, .. })));
}

#[test]
fn a_state_under_a_wrong_slot_is_not_taken_for_another() {
    let slot = memory(0);
    let actions = [Action::Store { step: 0, slot }, Action::Load { step: 0, slot }];
    let mut wrong = Memory::new();
    *wrong.begin(0).unwrap() = [5.0];
    wrong.commit(0, 3).unwrap();
    // The place says that it already holds the state before step 3; the schedule has not put it there.
    let mut sweep = Sweep::new(script(4, [Action::Load { step: 0, slot }])).with_place(Tier::Memory, wrong);
    assert!(matches!(sweep.run(&mut Chain::new()), Err(Error::Illegal { .. })));
    assert!(Sweep::new(script(0, actions)).run(&mut Chain::new()).is_err());
}
