//! What the driver itself costs per action, beyond the schedule and the steps.
//!
//! `cargo run --release -p ebbtide-sweep --example overhead`

use std::convert::Infallible;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use ebbtide_schedule::{AnySchedule, Online, Periodic, Revolve};
use ebbtide_sweep::{Stepper, Sweep};

/// Steps that do nothing.
struct Idle {
    x: u64,
    ends_at: u64,
}

impl Stepper for Idle {
    type State = [u64; 1];
    type Error = Infallible;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        self.x = black_box(steps.end);
        Ok(())
    }
    fn advance_online(&mut self, steps: Range<u64>) -> Result<u64, Infallible> {
        Ok(steps.end.min(self.ends_at))
    }
    fn record(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        self.advance(steps)
    }
    fn turn(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn reverse(&mut self, steps: Range<u64>) -> Result<(), Infallible> {
        self.advance(steps)
    }
    fn save(&self, state: &mut [u64; 1]) -> Result<(), Infallible> {
        *state = [self.x];
        Ok(())
    }
    fn restore(&mut self, state: &[u64; 1]) -> Result<(), Infallible> {
        self.x = state[0];
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const STEPS: u64 = 1_000_000;
    let schedules: [(&str, AnySchedule); 4] = [
        ("revolve, 100 slots", Revolve::new(STEPS, 100)?.into()),
        ("revolve, 10 slots", Revolve::new(STEPS, 10)?.into()),
        ("every 1000 steps", Periodic::new(STEPS, 1000)?.into()),
        ("online, 100 slots", Online::new(100)?.into()),
    ];
    println!(
        "schedule               actions   schedule alone   with driver   driver   (ns per action, best of 5)"
    );
    for (name, schedule) in schedules {
        let mut best = [f64::INFINITY; 2];
        let mut actions = 0;
        for _ in 0..5 {
            let mut sweep = Sweep::new(schedule.clone());
            let start = Instant::now();
            actions = sweep.run(&mut Idle { x: 0, ends_at: STEPS })?.actions;
            best[1] = best[1].min(start.elapsed().as_nanos() as f64 / actions as f64);
            let start = Instant::now();
            walk(schedule.clone(), STEPS)?;
            best[0] = best[0].min(start.elapsed().as_nanos() as f64 / actions as f64);
        }
        let driver = best[1] - best[0];
        println!("{name:<20} {actions:>9} {:>16.1} {:>13.1} {driver:>8.1}", best[0], best[1]);
    }
    Ok(())
}

/// Takes all actions of a schedule and does nothing with them.
fn walk(mut schedule: AnySchedule, steps: u64) -> Result<(), ebbtide_schedule::Error> {
    use ebbtide_schedule::{Action, Schedule};
    while let Some(action) = schedule.next() {
        if let Action::Advance { to, .. } = black_box(action)
            && to == steps
            && schedule.steps().is_none()
        {
            schedule.end(steps)?;
        }
    }
    Ok(())
}
