//! The gradient of a chaotic trajectory in a few hundred bytes, under several schedules.
//!
//! `cargo run --release --example lorenz`

#[path = "models/lorenz.rs"]
mod model;
#[path = "show.rs"]
#[macro_use]
#[allow(dead_code, reason = "this example has no curves")]
mod show;

use ebbtide_schedule::{AnySchedule, Online, Periodic, Revolve, StoreAll};
use ebbtide_sweep::{Stepper, Sweep};
use model::Lorenz;
use show::Failure;

const STEPS: u64 = 2_000;
const START: model::Point = [1.0, 1.0, 20.0];

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    let schedules: [(&str, AnySchedule); 6] = [
        ("store all", StoreAll::new(STEPS)?.into()),
        ("every 45 steps", Periodic::sqrt(STEPS)?.into()),
        ("revolve, 40 slots", Revolve::new(STEPS, 40)?.into()),
        ("revolve, 10 slots", Revolve::new(STEPS, 10)?.into()),
        ("revolve, 3 slots", Revolve::new(STEPS, 3)?.into()),
        ("online, 10 slots", Online::new(10)?.into()),
    ];
    say!("{STEPS} steps of the Lorenz equations, J = |x(T)|²/2\n");
    say!("schedule            states  memory (bytes)  steps run  per step   dJ/dx0               dJ/drho");
    for (name, schedule) in schedules {
        let mut lorenz = Lorenz::new(START);
        lorenz.ends_at = STEPS;
        let counters = Sweep::new(schedule).run(&mut lorenz)?;
        let run = counters.advanced + counters.recorded;
        say!(
            "{name:<18} {:>7} {:>15} {run:>10} {:>9.2}   {:<19.13e} {:.13e}",
            counters.memory.peak_slots,
            counters.memory.peak_bytes + counters.peak_tape_bytes,
            run as f64 / STEPS as f64,
            lorenz.dx[0],
            lorenz.dparameters[1],
        );
    }
    check()
}

/// Compares the gradient with central differences over a shorter time: chaos spoils differences over a long one.
fn check() -> Result<(), Failure> {
    let steps = 200;
    let objective = |shift: f64| {
        let mut lorenz = Lorenz::new([START[0] + shift, START[1], START[2]]);
        let Ok(()) = lorenz.advance(0..steps);
        lorenz.x.iter().map(|x| x * x / 2.0).sum::<f64>()
    };
    let mut lorenz = Lorenz::new(START);
    Sweep::new(Revolve::new(steps, 5)?).run(&mut lorenz)?;
    let difference = (objective(1e-5) - objective(-1e-5)) / 2e-5;
    say!("\nover {steps} steps: dJ/dx0 = {:.10}, by central differences {difference:.10}", lorenz.dx[0]);
    let error = ((lorenz.dx[0] - difference) / difference).abs();
    if error < 1e-7 { Ok(()) } else { Err(format!("the gradient is off by {error:e}").into()) }
}
