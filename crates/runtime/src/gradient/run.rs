//! A gradient run: segments run, loops driven by their schedules.

mod actions;
pub(crate) mod durable;
pub(crate) mod hosted;
pub(crate) mod room;
pub(crate) mod shapes;
mod slots;
mod tape_room;

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::parts::{Cause, Stop};
use ebbtide_ir::{Length, LoopId};
use ebbtide_schedule::{Action, AnySchedule, Slot};
use ebbtide_sweep::{Driver, part_of, steps_of};

use crate::device::frame::Frame;
use crate::device::frame::extents::from_arguments;
use crate::device::{Device, Executable};
use crate::error::{Error, Result};
use crate::gradient::choose::Chosen;
use crate::gradient::compile::Variant;
use crate::gradient::offload::{Hands, Offload};
use crate::gradient::plan::Budget;
use crate::gradient::planner::Schedules;
use crate::gradient::ran::{Ran, Replay};
use crate::gradient::run::durable::Frontier;
use crate::gradient::run::hosted::{Log, OnYield, Piece};
use crate::gradient::run::room::PlanAnew;
use crate::gradient::run::shapes::Shapes;
use crate::gradient::steps::{Step, Sweep};
use crate::gradient::tiers::Tiers;
use crate::gradient::watch::Watch;
use crate::memory::buffer::Buffer;
use crate::memory::spare::Spare;

/// A loop that is being driven.
pub(crate) struct Driven<'a> {
    pub sweep: &'a Sweep,
    pub driver: Driver<AnySchedule>,
    pub slots: HashMap<Slot, StoredState>,
    /// The first iteration, which does not change when the host changes shapes.
    first: i64,
    /// States that are not in the memory of the device.
    pub offload: Option<Offload>,
    /// How many of those are on disk.
    pub on_disk: usize,
    /// By slot that is not in the memory of the device: the number of the shapes of its state.
    pub offloaded_shapes: HashMap<usize, usize>,
    /// Where replays are checked: the checksum of the state before each iteration that was met.
    met: HashMap<u64, u32>,
    /// Memory of dropped slots, for the next ones.
    spare: Vec<Vec<Buffer>>,
}

/// A state in the memory of the device.
#[derive(Debug)]
pub(crate) struct StoredState {
    pub buffers: Vec<Buffer>,
    /// The number of the shapes that its arrays have.
    pub shapes: usize,
}

/// What a run works with.
pub(crate) struct Means<'a> {
    pub variant: &'a Variant,
    pub executable: &'a dyn Executable,
    pub device: &'a Device,
    pub spare: &'a Spare,
    pub tiers: &'a Tiers,
    pub host: Option<&'a OnYield>,
    pub replay: Replay,
    pub watch: Option<Watch<'a>>,
    pub planner: &'a dyn PlanAnew,
}

impl<'a> Driven<'a> {
    pub fn new(sweep: &'a Sweep, driver: Driver<AnySchedule>, on_disk: usize, first: i64) -> Driven<'a> {
        Driven {
            sweep,
            driver,
            slots: HashMap::new(),
            first,
            offload: None,
            on_disk,
            offloaded_shapes: HashMap::new(),
            met: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// The values that the loop's variable has in these iterations.
    pub fn counted(&self, from: u64, to: u64) -> (i64, i64) {
        (self.first.saturating_add(from as i64), self.first.saturating_add(to as i64))
    }
}

pub(crate) struct Run<'a> {
    pub variant: &'a Variant,
    pub executable: &'a dyn Executable,
    pub device: &'a Device,
    pub spare: &'a Spare,
    pub tiers: &'a Tiers,
    pub host: Option<&'a OnYield>,
    pub frame: &'a mut Frame,
    pub log: Log,
    /// The shapes that arrays have had.
    pub shapes: Shapes,
    replay: Replay,
    schedules: Schedules,
    /// Loops that have been entered: their schedules are in use.
    begun: BTreeSet<LoopId>,
    planner: &'a dyn PlanAnew,
    /// The plan that the run is to be begun again with.
    pub anew: Option<Chosen>,
    /// What the host said of the budget where there was no room.
    pub budget: Option<Budget>,
    pub sweeps: HashMap<LoopId, Driven<'a>>,
    pub ran: Ran,
    /// Which step of the whole run is being done; where that is a branch, which one of the branch, and so on inward.
    pub at: Vec<usize>,
    /// How many sweeps are being reversed around this place.
    level: usize,
    /// Where the run is made durable, if it is.
    pub frontier: Option<&'a mut Frontier>,
    /// Who wants to know how far it is.
    pub watch: Option<Watch<'a>>,
}

impl<'a> Run<'a> {
    pub fn new(means: Means<'a>, frame: &'a mut Frame, schedules: Schedules) -> Run<'a> {
        let Means { variant, executable, device, spare, tiers, host, replay, watch, planner } = means;
        Run {
            variant,
            executable,
            device,
            spare,
            tiers,
            host,
            frame,
            log: Log::default(),
            shapes: Shapes::default(),
            replay,
            schedules,
            begun: BTreeSet::new(),
            planner,
            anew: None,
            budget: None,
            sweeps: HashMap::new(),
            ran: Ran::default(),
            at: Vec::new(),
            level: 0,
            frontier: None,
            watch,
        }
    }

    /// Runs the segments and drives the loops, to the end. A run that is gone on with may be in the middle of a sweep.
    pub fn follow(&mut self) -> Result<Ran> {
        let reached = std::mem::take(&mut self.at);
        self.steps_from(&self.variant.steps.steps, &reached)?;
        if self.watch.is_some() {
            self.settle()?;
        }
        if let Some(watch) = &mut self.watch {
            watch.end(&self.ran);
        }
        Ok(self.ran)
    }

    /// Does steps outside of all sweeps, from the one that was reached on: its number, then that of a step of the branch
    /// that it takes, and so on inward.
    fn steps_from(&mut self, steps: &'a [Step], reached: &[usize]) -> Result<()> {
        let (first, mut inward) =
            reached.split_first().map_or((0, reached), |(first, inward)| (*first, inward));
        for (k, step) in steps.iter().enumerate().skip(first) {
            self.at.push(k);
            match step {
                Step::Forward(sweep) if self.sweeps.contains_key(&sweep.id) => self.forward_rest(sweep.id)?,
                Step::If { condition, then, otherwise } => {
                    self.settle()?;
                    let taken = self.frame.scalars.locals[condition.index()] != 0;
                    self.steps_from(if taken { then } else { otherwise }, inward)?;
                }
                step => self.steps(std::slice::from_ref(step))?,
            }
            self.at.pop();
            inward = &[];
        }
        Ok(())
    }

    /// The depth of recursion is that of nesting in the source.
    fn steps(&mut self, steps: &'a [Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Run(segment) => {
                    self.reserve(&self.variant.steps.pushes[*segment], (0, 1))?;
                    tracing::trace_span!("segment", segment).in_scope(|| self.segment(*segment, None))?;
                }
                Step::Forward(sweep) => self.forward(sweep)?,
                Step::Backward(id, reverse) => self.backward(*id, reverse)?,
                Step::Host(region, again) => self.host_again(*region, *again)?,
                Step::For { var, from, to, body } => {
                    self.settle()?;
                    let [from, to] = [from, to].map(|l| self.frame.scalars.locals[l.index()] as i64);
                    for iteration in from..to {
                        self.frame.scalars.values[var.index()] = iteration as u64;
                        self.steps(body)?;
                    }
                }
                Step::If { condition, then, otherwise } => {
                    self.settle()?;
                    let taken = self.frame.scalars.locals[condition.index()] != 0;
                    self.steps(if taken { then } else { otherwise })?;
                }
            }
        }
        Ok(())
    }

    /// Runs a segment; `piece` is the first iteration of the loop that it runs, if it is a piece of one.
    fn segment(&mut self, segment: usize, piece: Option<Piece<'_>>) -> Result<()> {
        if self.variant.hosted.is_empty() {
            return self.executable.enqueue(segment, self.frame);
        }
        self.settle()?;
        self.yielding_segment(segment, piece)
    }

    /// Waits for what was enqueued: then variables and tapes are as the frame says.
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.executable.settle(self.frame)?;
        self.frame.settle_tapes();
        Ok(())
    }

    /// Follows the schedule of a loop up to its turn.
    fn forward(&mut self, sweep: &'a Sweep) -> Result<()> {
        let schedule = self.schedules.get(&sweep.id).cloned();
        let (schedule, on_disk) = schedule.ok_or_else(|| self.variant.internal("a loop has no schedule"))?;
        // Inside another sweep, tapes that were used up make room. An outermost loop of known length asks for nothing that
        // is not known before the run.
        if self.level > 0 || matches!(sweep.length, Length::Unknown { .. }) {
            self.settle()?;
        }
        let schedule = self.schedule_of_length(sweep, schedule)?;
        self.begun.insert(sweep.id);
        self.sweeps.insert(sweep.id, Driven::new(sweep, Driver::new(schedule), on_disk, self.first(sweep)));
        self.forward_rest(sweep.id)?;
        // The state that will be wanted first can be on its way before it is.
        match self.sweeps.get_mut(&sweep.id).and_then(|driven| driven.offload.as_mut()) {
            Some(offload) => {
                let (executable, device, spare) = (self.executable, self.device, self.spare);
                let frame = &mut *self.frame;
                let mut hands = Hands { executable, frame, arrays: &sweep.carried, device, spare };
                offload.look_ahead(&mut hands, u64::MAX)
            }
            None => Ok(()),
        }
    }

    /// Where a loop keeps states beyond memory, and what moves them.
    pub fn offload<'d>(&'d mut self, driven: &'d mut Driven<'a>) -> (&'d mut Offload, Hands<'d>) {
        let arrays = &driven.sweep.carried;
        let (executable, device, spare) = (self.executable, self.device, self.spare);
        let sizes = || arrays.iter().map(|array| self.frame.arrays[array.index()].bytes).collect();
        let offload =
            driven.offload.get_or_insert_with(|| Offload::new(self.tiers, driven.on_disk, sizes(), device));
        (offload, Hands { executable, frame: &mut *self.frame, arrays, device, spare })
    }

    fn forward_rest(&mut self, id: LoopId) -> Result<()> {
        while let Some(mut driven) = self.sweeps.remove(&id) {
            let acted = match self.next_action(&mut driven) {
                Ok(Some(Action::Turn)) => {
                    driven.driver.did(Action::Turn);
                    Ok(false)
                }
                Ok(Some(action)) => self.act(&mut driven, action, &[]).map(|()| true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            self.sweeps.insert(id, driven);
            if !acted? {
                break;
            }
            self.look_up()?;
        }
        Ok(())
    }

    /// Follows the schedule of a loop from its turn to its end.
    fn backward(&mut self, id: LoopId, reverse: &'a [Step]) -> Result<()> {
        while let Some(mut driven) = self.sweeps.remove(&id) {
            let Some(action) = self.next_action(&mut driven)? else {
                driven
                    .driver
                    .finish()
                    .map_err(|why| self.variant.lost(&format!("a schedule ended early: {why}")))?;
                if !driven.slots.is_empty() || !driven.spare.is_empty() {
                    self.executable.submit(self.frame)?;
                }
                let states = driven.slots.into_values().map(|state| state.buffers);
                self.spare.give(states.chain(driven.spare).flatten());
                return driven.offload.map_or(Ok(()), |offload| offload.finish(self.spare));
            };
            self.level += 1;
            let acted = self.act(&mut driven, action, reverse);
            self.level -= 1;
            self.sweeps.insert(id, driven);
            acted?;
            self.look_up()?;
        }
        Err(self.variant.internal("a loop is reversed that was not run"))
    }

    /// The next action of a loop. In an outermost one that is watched, a long action is done part by part.
    fn next_action(&mut self, driven: &mut Driven<'a>) -> Result<Option<Action>> {
        let Some(action) = driven.driver.next_action() else { return Ok(None) };
        // A schedule may come from a file that anybody can write. Iterations are counted in `i64`.
        if let Action::Advance { to, .. } | Action::Record { to, .. } = action
            && i64::try_from(to).is_err()
        {
            return Err(self.variant.lost("a schedule asks for more iterations than can be counted"));
        }
        driven.driver.check(action).map_err(|illegal| self.variant.lost(&illegal.to_string()))?;
        Ok(Some(match &mut self.watch {
            Some(watch) if self.level == 0 => {
                let part = watch.part(action);
                match &self.frontier {
                    // All parts of a grid find the same part short enough.
                    Some(frontier) if frontier.is_of_all_parts() && steps_of(part) > 0 => {
                        part_of(action, frontier.least(steps_of(part))?)
                    }
                    _ => part,
                }
            }
            _ => action,
        }))
    }

    /// Between the actions of an outermost sweep the run can be looked at, and gone on with by another process.
    fn look_up(&mut self) -> Result<()> {
        if self.level > 0 {
            return Ok(());
        }
        if self.watch.as_mut().is_some_and(Watch::is_due) {
            // What was asked for counts when it has happened.
            self.settle()?;
            if let Some(watch) = &mut self.watch {
                watch.look(&self.ran);
            }
        }
        let Some(frontier) = &mut self.frontier else { return Ok(()) };
        let (cancelled, due) = match &self.watch {
            Some(watch) => frontier.wishes(watch.is_cancelled())?,
            None => (None, frontier.is_due()),
        };
        if cancelled.is_some() {
            frontier.flush()?;
        }
        if cancelled.is_some() || due {
            self.settle()?;
            self.commit()?;
        }
        match (&mut self.frontier, cancelled) {
            (Some(frontier), Some(part)) => {
                frontier.flush()?;
                let cancelled = Error::Cancelled { program: self.variant.source.name.clone() };
                if !frontier.is_of_all_parts() {
                    return Err(cancelled);
                }
                Err(Error::Part(Stop { part, cause: Cause::Cancelled, message: cancelled.to_string() }))
            }
            _ => Ok(()),
        }
    }

    /// Does an action, or a part of one.
    fn act(&mut self, driven: &mut Driven<'a>, action: Action, reverse: &'a [Step]) -> Result<()> {
        let done = self.carry_out(driven, action, reverse)?;
        driven.driver.did(done);
        Ok(())
    }

    pub(crate) fn first(&self, sweep: &Sweep) -> i64 {
        match sweep.length {
            Length::Unknown { .. } => 0,
            Length::Known(from, _) => {
                from_arguments(&self.variant.program, from, &self.frame.arrays, &self.frame.arguments)
                    .unwrap_or(0) as i64
            }
        }
    }
}
