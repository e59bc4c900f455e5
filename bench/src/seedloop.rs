//! A loop with several variables in its body: the curve of memory against time.
//!
//! The baseline is what a system keeps that stores every variable of the body in every pass.

use std::time::Duration;

use ebbtide::prelude::*;
use serde::Serialize;

use crate::compare::Bench;
use crate::workloads::{SEEDLOOP_VARIABLES, Workload};
use crate::{Result, ours};

/// One budget.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// What the budget is, as a part of the baseline.
    pub part: f64,
    pub budget_bytes: u64,
    pub planned_bytes: u64,
    pub metered_bytes: u64,
    pub seconds: f64,
    /// Store-all, and the passes that the plan runs again at the cost of a pass of the program.
    pub predicted_seconds: f64,
    pub recompute_factor: f64,
}

/// The curve.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    pub baseline_bytes: u64,
    pub store_all_bytes: u64,
    pub store_all_seconds: f64,
    pub pass_seconds: f64,
    pub points: Vec<Point>,
}

const PARTS: [f64; 8] = [0.004, 0.006, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15];

/// Measures the curve. All budgets and the program take turns.
pub fn curve(bench: &Bench) -> Result<Curve> {
    let workload = Workload::Seedloop;
    let size = workload.size();
    let baseline = (SEEDLOOP_VARIABLES * size.cells * size.steps * 8) as u64;
    let device = bench.device(1)?;
    let mut program = ours::primal(workload, size, &device)?;
    let mut all = ours::gradient(workload, size, &device, Budget::StoreAll)?;
    let mut points = Vec::new();
    for part in PARTS {
        let budget = (part * baseline as f64) as u64;
        let device = bench.device(1)?;
        let Ok(mut gradient) = ours::gradient(workload, size, &device, Budget::Bytes(budget)) else {
            continue;
        };
        let base = device.meter().live();
        (gradient.case.run)()?;
        let returned = device.meter().live() - base - (gradient.held_bytes)();
        points.push((part, budget, device.meter().peak() - base - returned, gradient));
    }
    let mut cases = vec![&mut program, &mut all.case];
    cases.extend(points.iter_mut().map(|(_, _, _, gradient)| &mut gradient.case));
    let times =
        crate::case::take_turns(&mut cases, &bench.clock(1), bench.at_least.max(Duration::from_secs(1)))?;
    let seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    let (pass, store_all) = (seconds[0] / size.steps as f64, seconds[1]);
    let points = points.into_iter().zip(&seconds[2..]).map(|((part, budget, metered, gradient), seconds)| {
        let again = gradient.plan.recompute_factor() - 1.0;
        Point {
            part,
            budget_bytes: budget,
            planned_bytes: gradient.plan.peak_bytes(),
            metered_bytes: metered,
            seconds: *seconds,
            predicted_seconds: store_all + again * size.steps as f64 * pass,
            recompute_factor: gradient.plan.recompute_factor(),
        }
    });
    Ok(Curve {
        baseline_bytes: baseline,
        store_all_bytes: all.plan.peak_bytes(),
        store_all_seconds: store_all,
        pass_seconds: pass,
        points: points.collect(),
    })
}
