//! Nanoseconds per operation of a chain of scalar operations: the best of several runs.
//!
//! `cargo run --release -p ebbtide-tape --example bench`

use std::hint::black_box;
use std::time::{Duration, Instant};

use ebbtide_tape::{Error, Mode, Tape, Var, with_mode};

const OPERATIONS: usize = 10_000;
const RUNS: usize = 200;

fn chain(tape: &Tape<f64>) -> (Var<f64>, Var<f64>) {
    let x = tape.leaf(0.3);
    let mut y = x.clone();
    for _ in 0..OPERATIONS {
        y = y * &x;
    }
    (x, y)
}

/// The best time of `RUNS` calls of `timed`, which returns what it measured.
fn best(mut timed: impl FnMut() -> Result<Duration, Error>) -> Result<f64, Error> {
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        best = best.min(timed()?);
    }
    Ok(best.as_secs_f64() * 1e9 / OPERATIONS as f64)
}

fn time<R>(run: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    black_box(run());
    start.elapsed()
}

fn main() -> Result<(), Error> {
    println!("chain of {OPERATIONS} multiplications, ns per operation, best of {RUNS}");
    let report = |name: &str, nanoseconds: f64| println!("{name:<38} {nanoseconds:8.1}");

    report(
        "record, retained",
        best(|| {
            let tape = Tape::new();
            let mut ends = None;
            let elapsed = time(|| ends = Some(chain(&tape)));
            Ok(elapsed)
        })?,
    );
    let used = Tape::new();
    report(
        "record, retained, on a freed tape",
        best(|| {
            used.free();
            Ok(time(|| chain(&used)))
        })?,
    );
    report(
        "free, retained",
        best(|| {
            let tape = Tape::new();
            drop(chain(&tape));
            Ok(time(|| tape.free()))
        })?,
    );
    let tape = Tape::new();
    let (_x, y) = chain(&tape);
    report("pull back, retained", best(|| Ok(time(|| tape.pullback(&y))))?);
    report("Hessian-vector product, retained", best(|| Ok(time(|| tape.hvp(&y, [(&_x, 1.0)]))))?);

    report(
        "record, checkpointed",
        best(|| {
            let tape = Tape::new();
            Ok(time(|| with_mode(Mode::Conservative, || chain(&tape))))
        })?,
    );
    let tape = Tape::new();
    let (_x, y) = with_mode(Mode::Conservative, || chain(&tape));
    report("pull back, checkpointed, no limit", best(|| Ok(time(|| tape.pullback(&y))))?);
    for slots in [10, 100] {
        let counts = *tape.sweep().slots(slots).pullback(&y)?.counts();
        let per_operation = best(|| Ok(time(|| tape.sweep().slots(slots).pullback(&y))))?;
        let replays = counts.replays.total() as f64 / OPERATIONS as f64;
        report(&format!("pull back, {slots} slots"), per_operation);
        report("  of which per replay", per_operation / replays);
    }
    Ok(())
}
