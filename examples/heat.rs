//! The gradient of a heat equation, in memory, with a disk, and as a run that survives its process.
//!
//! `cargo run --release --example heat` compares schedules.
//! `cargo run --release --example heat DIR` computes one gradient in a directory: kill it whenever you
//! like and run it again.

#[path = "models/heat.rs"]
mod model;
#[path = "show.rs"]
#[macro_use]
#[allow(dead_code, reason = "this example has no curves")]
mod show;

use std::path::Path;
use std::time::{Duration, Instant};

use ebbtide_schedule::{AnySchedule, Disk as DiskSlots, Multistage, Periodic, Revolve, StoreAll, Tier};
use ebbtide_snapshot::Disk;
use ebbtide_sweep::{Run, Stepper, Sweep};
use model::Heat;
use show::Failure;

const CELLS: usize = 5_000;
const STEPS: u64 = 3_000;
/// Enough of them for somebody to stop the run.
const DURABLE_STEPS: u64 = 40_000;
const DISK: DiskSlots = DiskSlots { slots: 60, write_cost: 4.0, read_cost: 4.0 };

/// Runs the example.
pub fn main() -> Result<(), Failure> {
    match std::env::args_os().nth(1) {
        Some(dir) => durable(Path::new(&dir)),
        None => tour(),
    }
}

/// Compares schedules, and the gradient with differences.
pub fn tour() -> Result<(), Failure> {
    compare()?;
    check()
}

fn compare() -> Result<(), Failure> {
    let schedules: [(&str, AnySchedule); 5] = [
        ("store all", StoreAll::new(STEPS)?.into()),
        ("every 55 steps", Periodic::sqrt(STEPS)?.into()),
        ("revolve, 30 slots", Revolve::new(STEPS, 30)?.into()),
        ("revolve, 4 slots", Revolve::new(STEPS, 4)?.into()),
        ("4 slots + 60 on disk", Multistage::new(STEPS, 4, DISK)?.into()),
    ];
    say!("{STEPS} steps of a heat equation on {CELLS} cells, J = misfit at the end\n");
    say!("schedule               memory (MiB)  on disk (MiB)  steps run  per step   seconds   dJ/dnu");
    for (name, schedule) in schedules {
        let mut heat = Heat::new(CELLS);
        let start = Instant::now();
        let disk = Disk::scratch(&std::env::temp_dir())?;
        let counters = Sweep::new(schedule).with_place(Tier::Disk, disk).run(&mut heat)?;
        let run = counters.advanced + counters.recorded;
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        say!(
            "{name:<22} {:>12.1} {:>14.1} {run:>10} {:>9.2} {:>9.2}   {:.15e}",
            mebibytes(counters.memory.peak_bytes + counters.peak_tape_bytes),
            mebibytes(counters.disk.peak_bytes),
            run as f64 / STEPS as f64,
            start.elapsed().as_secs_f64(),
            heat.dnu,
        );
    }
    Ok(())
}

/// Compares the gradient with central differences on a small rod.
fn check() -> Result<(), Failure> {
    let (cells, steps, shift) = (40, 100, 1e-6);
    let objective = |shift: f64| -> Result<f64, Failure> {
        let mut heat = Heat::new(cells);
        heat.nu += shift;
        heat.advance(0..steps)?;
        heat.turn()?;
        Ok(heat.objective)
    };
    let mut heat = Heat::new(cells);
    Sweep::new(Revolve::new(steps, 5)?).run(&mut heat)?;
    let difference = (objective(shift)? - objective(-shift)?) / (2.0 * shift);
    say!(
        "\n{cells} cells, {steps} steps: dJ/dnu = {:.10}, by central differences {difference:.10}",
        heat.dnu
    );
    let error = ((heat.dnu - difference) / difference).abs();
    if error < 1e-7 { Ok(()) } else { Err(format!("the gradient is off by {error:e}").into()) }
}

/// One gradient in a directory, kept there.
pub fn durable(dir: &Path) -> Result<(), Failure> {
    let mut heat = Heat::new(CELLS);
    let run = match dir.exists() {
        true => Run::open(dir)?,
        false => Run::create(dir, &heat, Multistage::new(DURABLE_STEPS, 4, DISK)?)?,
    };
    let mut last = Instant::now();
    let mut run = run.frontier_every(Duration::from_secs(1)).observe(move |progress| {
        if last.elapsed() > Duration::from_millis(200) {
            last = Instant::now();
            match progress.reversed {
                None => eprintln!("forward, {} steps run", progress.counters.advanced),
                Some(step) => eprintln!("backward, {step} steps to go"),
            }
        }
    });
    let counters = run.resume(&mut heat)?;
    for finding in run.damage() {
        eprintln!("done without: {finding}");
    }
    say!("this process advanced {} steps and reversed {}", counters.advanced, counters.reversed);
    say!("J = {:.15e}\ndJ/dnu = {:.15e}", heat.objective, heat.dnu);
    Ok(())
}
