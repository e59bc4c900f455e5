//! Ebbtide and hand-written C side by side, in one process for the time and in one each for the memory.

use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Optimize, Options};

use crate::case::{Case, Clock, take_turns};
use crate::reference::Reference;
use crate::row::{Kind, Row};
use crate::workloads::{Size, Workload};
use crate::{Result, by_hand, ours, resident};

pub const OURS: &str = "Ebbtide";
pub const C: &str = "C";

/// How a gradient keeps what it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    StoreAll,
    /// A state every √n steps.
    Sqrt,
    /// Ebbtide chooses the schedule, within so many bytes.
    Bytes(u64),
}

impl Keep {
    pub fn name(self) -> String {
        match self {
            Keep::StoreAll => "store-all".to_string(),
            Keep::Sqrt => "sqrt".to_string(),
            Keep::Bytes(bytes) => format!("budget={bytes}"),
        }
    }

    fn named(name: &str) -> Result<Keep> {
        match name {
            "store-all" => Ok(Keep::StoreAll),
            "sqrt" => Ok(Keep::Sqrt),
            _ => Ok(Keep::Bytes(name.strip_prefix("budget=").ok_or("no such schedule")?.parse()?)),
        }
    }

    fn period(self, steps: usize) -> usize {
        match self {
            Keep::Sqrt => (steps as f64).sqrt().ceil() as usize,
            Keep::StoreAll | Keep::Bytes(_) => steps,
        }
    }

    pub fn budget(self, steps: usize) -> Budget {
        match self {
            Keep::StoreAll => Budget::StoreAll,
            Keep::Sqrt => Budget::Periodic { period: self.period(steps) as u64 },
            Keep::Bytes(bytes) => Budget::Bytes(bytes),
        }
    }
}

/// What the measurements share.
pub struct Bench {
    pub reference: Rc<Reference>,
    pub cache: Cache,
    /// How long each comparison runs at least.
    pub at_least: Duration,
}

impl Bench {
    pub fn device(&self, threads: usize) -> Result<Device> {
        Ok(Options::new().threads(threads).optimize(Optimize::Always).cache(self.cache.clone()).build()?.0)
    }

    pub fn clock(&self, threads: usize) -> Clock {
        Clock::of(threads, &self.reference)
    }

    /// The workload itself.
    pub fn primal(&self, workload: Workload, size: Size, threads: usize) -> Result<Vec<Row>> {
        let mut ours = ours::primal(workload, size, &self.device(threads)?)?;
        let mut c = by_hand::primal(&self.reference, workload, size, threads)?;
        let times = take_turns(&mut [&mut ours, &mut c], &self.clock(threads), self.at_least)?;
        let mut rows = Vec::new();
        for (system, case, time) in [(OURS, &mut ours, times[0]), (C, &mut c, times[1])] {
            let mut row = Row::new(workload.name(), Kind::Primal, system, "", threads, size);
            row.seconds = Some(time.as_secs_f64());
            row.norm = Some((case.answer)()?.norm);
            rows.push(row);
        }
        Ok(agreed(rows))
    }

    /// The gradient under one schedule.
    pub fn gradient(&self, workload: Workload, size: Size, keep: Keep, threads: usize) -> Result<Vec<Row>> {
        let budget = keep.budget(size.steps);
        let mut ours = ours::gradient(workload, size, &self.device(threads)?, budget)?;
        let period = keep.period(size.steps);
        let mut c = by_hand::gradient(&self.reference, workload, size, period, threads)?;
        let times = take_turns(&mut [&mut ours.case, &mut c], &self.clock(threads), self.at_least)?;
        let row =
            |system: &str| Row::new(workload.name(), Kind::Gradient, system, &keep.name(), threads, size);
        let (mut of_ours, mut of_c) = (row(OURS), row(C));
        let found = (ours.case.answer)()?;
        (of_ours.seconds, of_c.seconds) = (Some(times[0].as_secs_f64()), Some(times[1].as_secs_f64()));
        (of_ours.loss, of_ours.norm) = (found.loss, Some(found.norm));
        of_c.norm = Some((c.answer)()?.norm);
        (of_ours.lines, of_c.lines) = (workload.lines(), workload.lines_of_c());
        of_ours.planned_bytes = Some(ours.plan.peak_bytes());
        Ok(agreed(vec![of_ours, of_c]))
    }

    /// The memory of one gradient, in a process of its own: the answer of [`in_this_process`].
    pub fn memory(&self, system: &str, workload: Workload, size: Size, keep: Keep) -> Result<Row> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["memory", system, workload.name(), &keep.name()]);
        command.args([size.cells.to_string(), size.steps.to_string()]).arg(self.reference.path());
        let done = command.output()?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().into());
        }
        Ok(serde_json::from_slice(&done.stdout)?)
    }

    /// How long the gradient takes to compile when nothing is in the cache.
    pub fn compile_seconds(&self, workload: Workload) -> Result<f64> {
        let folder = tempfile::tempdir()?;
        let (device, _) =
            Options::new().threads(1).optimize(Optimize::Always).cache(Cache::at(folder.path())).build()?;
        let compiled = ours::gradient(workload, workload.size(), &device, Budget::StoreAll)?;
        Ok(compiled.compile.as_secs_f64())
    }
}

fn agreed(mut rows: Vec<Row>) -> Vec<Row> {
    if let [ours, c] = &mut rows[..] {
        c.compare(ours);
    }
    rows
}

/// Measures the memory of the first run of a gradient: `memory SYSTEM WORKLOAD SCHEDULE CELLS STEPS REFERENCE`.
pub fn in_this_process(words: &[String]) -> Result<()> {
    let [system, workload, keep, cells, steps, reference] = words else {
        return Err("memory: system, workload, schedule, cells, steps, compiled reference".into());
    };
    let workload = Workload::named(workload).ok_or("no such workload")?;
    let (keep, size) = (Keep::named(keep)?, Size { cells: cells.parse()?, steps: steps.parse()? });
    let mut row = Row::new(workload.name(), Kind::Gradient, system, &keep.name(), 1, size);
    if system == OURS {
        let (device, _) = Options::new().threads(1).optimize(Optimize::Always).build()?;
        let mut gradient = ours::gradient(workload, size, &device, keep.budget(size.steps))?;
        let before = device.meter().live();
        row.resident_bytes = Some(resident_rise(&mut gradient.case)?);
        // The derivatives that are returned are the caller's.
        let returned = device.meter().live() - before - (gradient.held_bytes)();
        row.metered_bytes = Some(device.meter().peak() - before - returned);
        row.planned_bytes = Some(gradient.plan.peak_bytes());
    } else {
        let reference = Rc::new(Reference::at(reference.as_ref())?);
        let mut case = by_hand::gradient(&reference, workload, size, keep.period(size.steps), 1)?;
        row.resident_bytes = Some(resident_rise(&mut case)?);
    }
    println!("{}", serde_json::to_string(&row)?);
    Ok(())
}

/// By how much the resident set rises in one run.
fn resident_rise(case: &mut Case) -> Result<u64> {
    resident::reset_peak();
    let before = resident::now();
    (case.run)()?;
    Ok(resident::peak().saturating_sub(before))
}
