//! What a launch, a pass of a gated loop and a yield cost.

use std::hint::black_box;
use std::time::Instant;

use ebbtide::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compare::Bench;

#[derive(Label)]
enum Stage {
    Count,
}

/// One statement, gated.
#[program]
fn counting(count: &mut Array0<i32>, flag: &Array0<i32>, steps: usize) {
    for _t in 0..steps {
        #[checkpoint(Stage::Count, yield_on = flag)]
        {
            count[[]] += 1;
        }
    }
}

/// A device loop with two small parallel tasks, gated.
#[program]
fn passes(x: &mut Array1<f64>, y: &mut Array1<f64>, count: &mut Array0<i32>, flag: &Array0<i32>, steps: i32) {
    loop {
        #[checkpoint(Stage::Count, yield_on = flag)]
        {
            for i in par(0..x.len()) {
                x[i] = y[i];
            }
            for i in par(0..y.len()) {
                y[i] = x[i] + 1.0;
            }
        }
        count[[]] += 1;
        if count[[]] >= steps {
            break;
        }
    }
}

/// Microseconds, for Ebbtide and for a peer that has such things.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// A launch of a program that does next to nothing.
    pub launch: f64,
    /// A pass of a loop on the device with two small parallel tasks in a gated region.
    pub gated_pass: f64,
    /// Launch, yield, clear the flag, resume to the end.
    pub yield_round: f64,
}

/// The least of ten means, in microseconds.
fn microseconds(repeats: u32, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..repeats {
            run()?;
        }
        least = least.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(repeats));
    }
    Ok(least)
}

/// Measures them on one thread.
pub fn costs(bench: &Bench) -> Result<Costs> {
    let device = bench.device(1)?;
    let (mut count, mut flag) = (device.scalar(0)?, device.scalar(0)?);
    let counting = counting().compile(&device)?;
    let launch = microseconds(2000, || {
        let _ = black_box(counting.launch((&mut count, &flag, 0))?);
        Ok(())
    })?;
    let yield_round = microseconds(2000, || {
        flag.fill(1)?;
        if let Status::Yielded(at) = counting.launch((&mut count, &flag, 2))? {
            flag.fill(0)?;
            let _ = black_box(counting.resume(&at, (&mut count, &flag, 2))?);
        }
        Ok(())
    })?;
    const PASSES: i32 = 10_000;
    flag.fill(0)?;
    let passes = passes().compile(&device)?;
    let (mut x, mut y) = (device.zeros([4])?, device.zeros([4])?);
    let gated_pass = microseconds(1, || {
        count.fill(0)?;
        let _ = black_box(passes.launch((&mut x, &mut y, &mut count, &flag, PASSES))?);
        Ok(())
    })? / f64::from(PASSES);
    Ok(Costs { launch, gated_pass, yield_round })
}
