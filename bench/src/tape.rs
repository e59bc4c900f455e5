//! What an operation on numbers costs on the eager tape.

use std::time::Duration;

use ebbtide_tape::{Mode, Tape, Var, with_mode};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compare::Bench;

const OPERATIONS: usize = 10_000;

/// Nanoseconds per operation of a chain of multiplications.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PerOperation {
    pub record: f64,
    pub pull_back: f64,
    pub pull_back_checkpointed: f64,
}

fn chain(tape: &Tape<f64>) -> Var<f64> {
    let x = tape.leaf(0.3);
    let mut y = x.clone();
    for _ in 0..OPERATIONS {
        y = y * &x;
    }
    y
}

/// Measures them on one thread.
pub fn per_operation(bench: &Bench) -> Result<PerOperation> {
    let best = |run: &mut dyn FnMut() -> Result<()>, before: &mut dyn FnMut()| -> Result<f64> {
        let mut least = Duration::MAX;
        for _ in 0..100 {
            before();
            let start = bench.reference.processor_time();
            run()?;
            least = least.min(bench.reference.processor_time() - start);
        }
        Ok(least.as_secs_f64() * 1e9 / OPERATIONS as f64)
    };
    let tape = Tape::new();
    let record = best(
        &mut || {
            drop(chain(&tape));
            Ok(())
        },
        &mut || tape.free(),
    )?;
    let (retained, checkpointed) = (Tape::new(), Tape::new());
    let y = chain(&retained);
    let pull_back = best(&mut || Ok(retained.pullback(&y).map(drop)?), &mut || ())?;
    let y = with_mode(Mode::Aggressive, || chain(&checkpointed));
    let pull_back_checkpointed = best(&mut || Ok(checkpointed.pullback(&y).map(drop)?), &mut || ())?;
    Ok(PerOperation { record, pull_back, pull_back_checkpointed })
}
