//! Room for a run whose arrays have grown, or whose memory cannot be had: another plan, or the host is asked for more.

use std::collections::BTreeMap;

use ebbtide_ir::Length;
use ebbtide_schedule::{AnySchedule, Options, Revolve, Schedule as _, StoreAll};

use super::hosted::{Host, OnYield};
use crate::device::Device;
use crate::device::frame::extents::from_arguments;
use crate::error::{Error, Result};
use crate::gradient::choose::{Chosen, ShapesByName};
use crate::gradient::plan::Budget;
use crate::gradient::run::Run;
use crate::gradient::steps::Sweep;
use crate::launch::yielded::{Shortage, Yielded};
use crate::memory::byte_count::byte_count;
use crate::memory::spare::Spare;

/// Plans a run for other shapes than those of its launch.
pub(crate) trait PlanAnew {
    /// A plan under this budget, or that of the launch; `None` where the plan that the run follows will do.
    fn plan_anew(&self, shapes: &ShapesByName, budget: Option<Budget>) -> Result<Option<Chosen>>;

    /// Is it a plan of the gradient program that the run follows?
    fn is_of_this_program(&self, chosen: &Chosen) -> bool;
}

/// Who is asked for room, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub host: Option<&'a OnYield>,
    pub device: &'a Device,
    pub spare: &'a Spare,
}

/// Yields for want of room: the host may free memory, raise the budget, or give up. Where there is no host to ask, or it
/// does nothing, the error is what it was.
pub(crate) fn ask_for_room(
    asking: Asking<'_>,
    at: &Yielded,
    budget: &mut Option<Budget>,
    error: Error,
) -> Result<()> {
    let Asking { host, device, spare } = asking;
    let (Some(on_yield), Some(shortage)) = (host, Shortage::of(&error, device)) else {
        return Err(error);
    };
    let meter = device.meter();
    // What earlier launches left is the first thing that can go.
    spare.release();
    let room = (meter.live(), meter.limit(), *budget);
    let mut host = Host { program: at.program.name.clone(), arrays: BTreeMap::new(), memory: None };
    let at = Yielded { shortage: Some(shortage), ..at.clone() };
    tracing::debug!(name: "yield", position = %at.position(), needed = shortage.needed);
    // One that knows nothing of such yields fails at arrays that are not there, and has given up as well.
    if on_yield(&at, &mut host).is_err() {
        return Err(error);
    }
    if let Some(bytes) = host.memory {
        *budget = Some(Budget::Bytes(bytes));
    }
    if (meter.live(), meter.limit(), *budget) == room { Err(error) } else { Ok(()) }
}

impl<'a> Run<'a> {
    /// Sees to it that the run has a plan for the shapes that arrays have had. If it has to be begun again for that,
    /// `anew` has the plan, and this is an error.
    pub(crate) fn plan_for_shapes(&mut self, at: &Yielded) -> Result<()> {
        let shapes = self.largest_shapes();
        loop {
            match self.planner.plan_anew(&shapes, self.budget) {
                Ok(None) => return Ok(()),
                Ok(Some(chosen)) => return self.adopt(chosen),
                Err(error) => self.ask_for_room(at, error)?,
            }
        }
    }

    /// Sees to it that loops which another process did not begin have schedules for the shapes that arrays have had. Those
    /// that it began continue as they are.
    pub(crate) fn plan_restored(&mut self) -> Result<()> {
        if self.shapes.count() == 1 {
            return Ok(());
        }
        self.begun.extend(self.sweeps.keys());
        let (shapes, at) = (self.largest_shapes(), Yielded::nowhere(&self.variant.source));
        loop {
            match self.planner.plan_anew(&shapes, self.budget) {
                Ok(None) => return Ok(()),
                Ok(Some(chosen)) => {
                    self.schedules = chosen.schedules;
                    return Ok(());
                }
                Err(error) => self.ask_for_room(&at, error)?,
            }
        }
    }

    /// Of each array whose shape has changed, the shape in which it had the most elements.
    pub(crate) fn largest_shapes(&self) -> ShapesByName {
        let mut largest = ShapesByName::new();
        for (array, shape) in self.log.reshapes.iter().flat_map(|reshape| &reshape.shapes) {
            let decl = self.variant.source.array(*array);
            let size = |shape: &[usize]| byte_count(shape, decl.ty).unwrap_or(usize::MAX);
            let launch = self.shapes.of(*array, 0, decl.rank).unwrap_or_default();
            let launch: Vec<usize> = launch.iter().map(|n| *n as usize).collect();
            let known = largest.entry(decl.name.clone()).or_insert(launch);
            if size(shape) >= size(known) {
                known.clone_from(shape);
            }
        }
        largest
    }

    /// Follows another plan from here on, where the loops that were begun have the same schedules in it.
    fn adopt(&mut self, chosen: Chosen) -> Result<()> {
        let text = |of: Option<&(AnySchedule, usize)>| of.map(|(schedule, _)| schedule.to_string());
        let same = |id| text(self.schedules.get(id)) == text(chosen.schedules.get(id));
        if self.planner.is_of_this_program(&chosen) && self.begun.iter().all(same) {
            self.schedules = chosen.schedules;
            return Ok(());
        }
        self.anew = Some(chosen);
        Err(self.variant.lost("it is begun again under another plan"))
    }

    /// Does something that takes memory; where there is none, the host is asked for some.
    pub(crate) fn with_room<T>(&mut self, work: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        loop {
            match work(self) {
                Err(error @ Error::OutOfMemory { .. }) => {
                    let at = Yielded::nowhere(&self.variant.source);
                    self.ask_for_room(&at, error)?;
                }
                done => return done,
            }
        }
    }

    fn ask_for_room(&mut self, at: &Yielded, error: Error) -> Result<()> {
        let Run { host, device, spare, .. } = *self;
        ask_for_room(Asking { host, device, spare }, at, &mut self.budget, error)
    }

    /// The schedule of a loop that is entered now. Where its number of iterations hangs on a shape that has changed, it is
    /// one that takes no more room than the one that was planned.
    pub(super) fn schedule_of_length(&self, sweep: &Sweep, planned: AnySchedule) -> Result<AnySchedule> {
        let Length::Known(from, to) = sweep.length else { return Ok(planned) };
        if self.shapes.count() == 1 {
            return Ok(planned);
        }
        let value = |v| from_arguments(&self.variant.program, v, &self.frame.arrays, &self.frame.arguments);
        let (Some(from), Some(to)) = (value(from), value(to)) else { return Ok(planned) };
        let steps = (to as i64).saturating_sub(from as i64).max(0) as u64;
        let Some(totals) = planned.totals().filter(|_| planned.steps() != Some(steps)) else {
            return Ok(planned);
        };
        let wrong = |e: ebbtide_schedule::Error| self.variant.lost(&e.to_string());
        if totals.peak_tape >= steps || totals.memory.peak_slots == 0 {
            return Ok(StoreAll::new(steps).map_err(wrong)?.into());
        }
        let slots = usize::try_from(totals.memory.peak_slots).unwrap_or(usize::MAX);
        let options = Options::new().block(totals.peak_tape.max(1));
        Ok(Revolve::with(steps, slots, options).map_err(wrong)?.into())
    }
}
