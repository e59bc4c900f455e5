//! Schedules as iterators of actions.

use ebbtide_schedule::{
    Action as Act, AnySchedule, Disk, Mixed, Multistage, Online, Options, Periodic, Problem, Revolve,
    Schedule as _, Sizes, Slot, StoreAll, Tier, best_plan,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One instruction of a schedule. `kind` is `advance`, `store`, `load`, `drop`, `record`, `reverse` or `turn`.
#[pyclass(module = "ebbtide.schedules", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Action {
    act: Act,
}

#[pymethods]
impl Action {
    #[getter]
    fn kind(&self) -> &'static str {
        KINDS[raw(self.act).0 as usize]
    }

    /// The first step of `advance`, `record` and `reverse`; the step of `store` and `load`.
    #[getter]
    fn start(&self) -> Option<u64> {
        match self.act {
            Act::Advance { from, .. } | Act::Record { from, .. } | Act::Reverse { from, .. } => Some(from),
            Act::Store { step, .. } | Act::Load { step, .. } => Some(step),
            Act::Drop { .. } | Act::Turn => None,
        }
    }

    /// The step after the last one of `advance`, `record` and `reverse`.
    #[getter]
    fn stop(&self) -> Option<u64> {
        match self.act {
            Act::Advance { to, .. } | Act::Record { to, .. } | Act::Reverse { to, .. } => Some(to),
            _ => None,
        }
    }

    /// The slot of `store`, `load` and `drop`: its tier, `memory` or `disk`, and its number there.
    #[getter]
    fn slot(&self) -> Option<(&'static str, usize)> {
        match self.act {
            Act::Store { slot, .. } | Act::Load { slot, .. } | Act::Drop { slot } => {
                Some((if slot.tier == Tier::Memory { "memory" } else { "disk" }, slot.index))
            }
            _ => None,
        }
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.act)
    }
}

const KINDS: [&str; 7] = ["advance", "store", "load", "drop", "record", "reverse", "turn"];

/// The action as three numbers: its kind, and its range, or its step and slot. Slots on disk are negative.
fn raw(action: Act) -> (u8, i64, i64) {
    let place = |slot: Slot| match slot.tier {
        Tier::Memory => slot.index as i64,
        Tier::Disk => -1 - slot.index as i64,
    };
    match action {
        Act::Advance { from, to } => (0, from as i64, to as i64),
        Act::Store { step, slot } => (1, step as i64, place(slot)),
        Act::Load { step, slot } => (2, step as i64, place(slot)),
        Act::Drop { slot } => (3, 0, place(slot)),
        Act::Record { from, to } => (4, from as i64, to as i64),
        Act::Reverse { from, to } => (5, from as i64, to as i64),
        Act::Turn => (6, 0, 0),
    }
}

/// A stream of actions. Its text, between two actions, is the rest of the stream: `Schedule.parse(str(s))`.
#[pyclass(module = "ebbtide.schedules")]
pub struct Schedule {
    pub inner: AnySchedule,
}

fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn options(block: u64, primal_first: bool) -> Options {
    let options = Options::new().block(block);
    if primal_first { options.primal_first() } else { options }
}

#[pymethods]
impl Schedule {
    #[staticmethod]
    fn store_all(steps: u64) -> PyResult<Schedule> {
        Ok(Schedule { inner: StoreAll::new(steps).map_err(refuse)?.into() })
    }

    #[staticmethod]
    #[pyo3(signature = (steps, slots, block=1, primal_first=false))]
    fn revolve(steps: u64, slots: usize, block: u64, primal_first: bool) -> PyResult<Schedule> {
        let made = Revolve::with(steps, slots, options(block, primal_first));
        Ok(Schedule { inner: made.map_err(refuse)?.into() })
    }

    #[staticmethod]
    #[pyo3(signature = (steps, period, primal_first=false))]
    fn periodic(steps: u64, period: u64, primal_first: bool) -> PyResult<Schedule> {
        let made = Periodic::with(steps, period, options(1, primal_first));
        Ok(Schedule { inner: made.map_err(refuse)?.into() })
    }

    #[staticmethod]
    #[pyo3(signature = (steps, slots, block=1))]
    fn mixed(steps: u64, slots: usize, block: u64) -> PyResult<Schedule> {
        Ok(Schedule { inner: Mixed::with(steps, slots, options(block, false)).map_err(refuse)?.into() })
    }

    #[staticmethod]
    #[pyo3(signature = (slots, block=1))]
    fn online(slots: usize, block: u64) -> PyResult<Schedule> {
        Ok(Schedule { inner: Online::with(slots, options(block, false)).map_err(refuse)?.into() })
    }

    #[staticmethod]
    #[pyo3(signature = (steps, slots, disk_slots, write=1.0, read=1.0))]
    fn multistage(steps: u64, slots: usize, disk_slots: usize, write: f64, read: f64) -> PyResult<Schedule> {
        let disk = disk(disk_slots, write, read);
        Ok(Schedule { inner: Multistage::new(steps, slots, disk).map_err(refuse)?.into() })
    }

    /// The cheapest schedule within a number of bytes, for states and tapes of these sizes.
    #[staticmethod]
    fn best(steps: u64, memory: u64, state_bytes: u64, tape_bytes: u64) -> PyResult<Schedule> {
        let problem = Problem::new(steps, Sizes { state: state_bytes, tape: tape_bytes });
        let best = best_plan(&problem, memory).map_err(refuse)?;
        Ok(Schedule { inner: best.plan.schedule().map_err(refuse)? })
    }

    /// A schedule from its text.
    #[staticmethod]
    fn parse(text: &str) -> PyResult<Schedule> {
        Ok(Schedule { inner: text.parse().map_err(refuse)? })
    }

    /// The name of the schedule.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    /// The number of steps, where it is known.
    #[getter]
    fn steps(&self) -> Option<u64> {
        self.inner.steps()
    }

    /// Tells an online schedule that the loop ended before this step.
    fn end(&mut self, steps: u64) -> PyResult<()> {
        self.inner.end(steps).map_err(refuse)
    }

    /// How many steps are advanced and recorded in all, where there is a formula.
    fn executions(&self) -> Option<f64> {
        self.inner.totals().map(|totals| totals.executions() as f64)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<Action> {
        self.inner.next().map(|act| Action { act })
    }

    /// The next action as three numbers, for drivers; `None` at the end.
    fn _next(&mut self) -> Option<(u8, i64, i64)> {
        self.inner.next().map(raw)
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }
}

fn disk(slots: usize, write: f64, read: f64) -> Disk {
    Disk { slots, write_cost: write, read_cost: read }
}
