//! Gradient runs: a gradient program, its loops driven by schedules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ebbtide_autodiff::{Gradient, Pushes};
use ebbtide_ir::{self as ir, ArrayId, Length, LoopId, Outcome, Program, Role, ValueId};
use ebbtide_schedule::{Action, AnySchedule, Schedule, Slot};

use crate::arguments::{Arg, bind, bind_first, from_arguments};
use crate::buffer::{Buffer, Spare};
use crate::device::{Device, Executable, Start};
use crate::error::{Error, Result};
use crate::frame::{Frame, Temp, View};
use crate::plan::{Budget, Need, Plan, plan};
use crate::script::{Script, Step, Sweep};

/// A gradient program compiled for a device, without the types of its parameters.
#[derive(Clone)]
pub struct CompiledGradient {
    program: Arc<Program>,
    pushes: std::collections::BTreeMap<LoopId, Vec<Pushes>>,
    pushes_outside: Vec<Pushes>,
    script: Arc<Script>,
    device: Device,
    executable: Arc<dyn Executable>,
    budget: Budget,
    plans: Plans,
    /// What launches leave for the next one, so that it allocates nothing.
    spare: Arc<Spare>,
}

/// Plans made before: planning is worth remembering, since most launches have the shapes of the last one.
type Plans = Arc<Mutex<Vec<(Vec<Need>, u64, Budget, Plan, Vec<AnySchedule>)>>>;

/// As many plans are remembered.
const REMEMBERED: usize = 16;

/// What a gradient run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Passes run forward without a tape.
    pub advanced: u64,
    /// Passes run forward with their tape.
    pub recorded: u64,
    /// Passes reversed.
    pub reversed: u64,
    /// States put into slots.
    pub stored: u64,
    /// States taken from slots.
    pub loaded: u64,
}

impl CompiledGradient {
    /// Compiles a gradient program.
    pub fn new(gradient: &Gradient, device: &Device, budget: Budget) -> Result<CompiledGradient> {
        let _span = tracing::debug_span!("compile", program = gradient.program.name).entered();
        let facts = Arc::new(ir::verify(&gradient.program)?);
        let program = Arc::new(gradient.program.clone());
        let script = Arc::new(Script::of(&program));
        let segments: Vec<&ir::Block> = script.segments.iter().collect();
        let executable = device.backend().compile(&program, &facts, &segments)?;
        Ok(CompiledGradient {
            program,
            pushes: gradient.pushes.clone(),
            pushes_outside: gradient.pushes_outside.clone(),
            script,
            device: device.clone(),
            executable,
            budget,
            plans: Plans::default(),
            spare: Arc::default(),
        })
    }

    /// The same gradient under another budget; nothing is compiled again.
    pub fn with_budget(&self, budget: Budget) -> CompiledGradient {
        CompiledGradient { budget, spare: Arc::default(), ..self.clone() }
    }

    /// The gradient program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The generated source, where the device generates any.
    pub fn source(&self) -> Option<&str> {
        self.executable.source()
    }

    /// The bytes that earlier launches left for the next one.
    pub fn held_bytes(&self) -> u64 {
        self.spare.bytes()
    }

    /// Frees what earlier launches left for the next one.
    pub fn release(&self) {
        self.spare.release();
    }

    /// What a launch with these arguments would do; those that receive results may be left out. Runs nothing.
    pub fn plan(&self, args: &[Arg<'_>]) -> Result<Plan> {
        let (views, scalars) = bind_first(&self.program, &self.device, args)?;
        Ok(self.prepare(&views, &scalars)?.0)
    }

    /// Runs the gradient program.
    pub fn launch(&self, args: &[Arg<'_>]) -> Result<Ran> {
        let _span = tracing::debug_span!("gradient", program = self.program.name).entered();
        let (views, scalars) = bind(&self.program, &self.device, args)?;
        let (_, schedules) = self.prepare(&views, &scalars)?;
        let mut frame = self.frame(views, scalars)?;
        let ran = self.follow(&mut frame, schedules);
        self.spare.give(frame.into_buffers());
        ran
    }

    /// A frame in memory that earlier launches left.
    fn frame(&self, views: Vec<View>, scalars: Vec<ir::Literal>) -> Result<Frame> {
        let mut temps = Vec::new();
        for id in self.program.array_ids() {
            if let Role::Temp(_) = self.program.array(id).role {
                let shape = crate::arguments::extents(&self.program, id, &views, &scalars)?;
                temps.push(Temp::reused(&self.program, id, &shape, &self.spare, self.device.meter())?);
            }
        }
        Frame::with(&self.program, views, scalars, ir::Scalars::of(&self.program), temps, self.device.meter())
    }

    /// Runs the segments and drives the loops.
    fn follow(&self, frame: &mut Frame, schedules: Vec<AnySchedule>) -> Result<Ran> {
        let mut run = Run { gradient: self, frame, sweeps: HashMap::new(), ran: Ran::default() };
        let mut schedules = schedules.into_iter();
        run.reserve(&self.pushes_outside, 1)?;
        for step in &self.script.steps {
            match step {
                Step::Run(segment) => {
                    tracing::trace_span!("segment", segment).in_scope(|| run.segment(*segment))?
                }
                Step::Forward(sweep) => {
                    let schedule = schedules.next().ok_or_else(|| self.lost("a loop has no schedule"))?;
                    run.sweeps.insert(
                        sweep.id,
                        Driven { sweep, schedule, slots: HashMap::new(), spare: Vec::new() },
                    );
                    run.drive(sweep.id, Half::Forward)?;
                }
                Step::Backward(id) => {
                    run.drive(*id, Half::Backward)?;
                    if let Some(driven) = run.sweeps.remove(id) {
                        self.spare.give(driven.slots.into_values().chain(driven.spare).flatten());
                    }
                }
            }
        }
        Ok(run.ran)
    }

    fn lost(&self, message: &str) -> Error {
        Error::Plan { program: self.program.name.clone(), message: message.to_string() }
    }

    /// The plan and a schedule for each loop.
    fn prepare(&self, views: &[View], scalars: &[ir::Literal]) -> Result<(Plan, Vec<AnySchedule>)> {
        let mut sizes = vec![0u64; self.program.arrays.len()];
        let mut fixed = 0;
        for id in self.program.array_ids() {
            let decl = self.program.array(id);
            sizes[id.index()] = match decl.role {
                Role::Temp(_) => {
                    let shape = crate::arguments::extents(&self.program, id, views, scalars)?;
                    let bytes = shape.iter().product::<usize>() as u64 * decl.ty.size() as u64;
                    fixed += bytes;
                    bytes
                }
                _ => views[id.index()].bytes as u64,
            };
        }
        for pushes in &self.pushes_outside {
            fixed += sizes[pushes.array.index()] * self.times(pushes, views, scalars)?;
        }
        let mut needs = Vec::new();
        for sweep in self.script.sweeps() {
            let steps = match sweep.length {
                Length::Unknown { .. } => None,
                Length::Known(from, to) => {
                    let value =
                        |v: ValueId| from_arguments(&self.program, v, views, scalars).map(|bits| bits as i64);
                    let (Some(from), Some(to)) = (value(from), value(to)) else {
                        return Err(self.lost("the bounds of a loop could not be computed"));
                    };
                    Some(to.saturating_sub(from).max(0) as u64)
                }
            };
            let mut tape = 0;
            for pushes in self.pushes.get(&sweep.id).into_iter().flatten() {
                tape += sizes[pushes.array.index()] * self.times(pushes, views, scalars)?;
            }
            let state = sweep.carried.iter().map(|a| sizes[a.index()]).sum();
            needs.push(Need { steps, state, tape, hint: sweep.hint });
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.iter().find(|p| (&p.0, p.1, p.2) == (&needs, fixed, self.budget)) {
            return Ok((known.3.clone(), known.4.clone()));
        }
        let (plan, schedules) = tracing::debug_span!("plan", program = self.program.name)
            .in_scope(|| plan(&self.program.name, &needs, fixed, self.budget))?;
        if plans.len() >= REMEMBERED {
            plans.remove(0);
        }
        plans.push((needs, fixed, self.budget, plan.clone(), schedules.clone()));
        Ok((plan, schedules))
    }

    /// How often one pass makes this push.
    fn times(&self, pushes: &Pushes, views: &[View], scalars: &[ir::Literal]) -> Result<u64> {
        let mut times: u64 = 1;
        for (from, to) in &pushes.within {
            let value = |v: ValueId| from_arguments(&self.program, v, views, scalars).map(|bits| bits as i64);
            let (Some(from), Some(to)) = (value(*from), value(*to)) else {
                return Err(
                    self.lost("the bounds of an inner loop depend on data: that cannot be reversed yet")
                );
            };
            times = times.saturating_mul(to.saturating_sub(from).max(0) as u64);
        }
        Ok(times)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Forward,
    Backward,
}

/// A loop that is being driven.
struct Driven<'a> {
    sweep: &'a Sweep,
    schedule: AnySchedule,
    slots: HashMap<Slot, Vec<Buffer>>,
    /// Memory of dropped slots, for the next ones.
    spare: Vec<Vec<Buffer>>,
}

struct Run<'a> {
    gradient: &'a CompiledGradient,
    frame: &'a mut Frame,
    sweeps: HashMap<LoopId, Driven<'a>>,
    ran: Ran,
}

impl Run<'_> {
    fn segment(&mut self, segment: usize) -> Result<()> {
        match self.gradient.executable.run(segment, self.frame, Start::Beginning)? {
            Outcome::Done => Ok(()),
            Outcome::Yielded { .. } => Err(self.gradient.lost("a gradient program yielded")),
        }
    }

    /// Follows the schedule of a loop up to its turn, or from there to its end.
    fn drive(&mut self, id: LoopId, half: Half) -> Result<()> {
        let Some(mut driven) = self.sweeps.remove(&id) else {
            return Err(self.gradient.lost("a loop is reversed that was not run"));
        };
        while let Some(action) = driven.schedule.next() {
            if action == Action::Turn && half == Half::Forward {
                break;
            }
            self.act(&mut driven, action)?;
        }
        self.sweeps.insert(id, driven);
        Ok(())
    }

    fn act(&mut self, driven: &mut Driven<'_>, action: Action) -> Result<()> {
        let sweep = driven.sweep;
        let _span = crate::trace::action(&action);
        match action {
            Action::Advance { from, to } => {
                self.piece(sweep, from, to);
                self.segment(sweep.advance)?;
                let mut to = to;
                if let Length::Unknown { reached, ended } = sweep.length
                    && driven.schedule.steps().is_none()
                {
                    let locals = &self.frame.scalars.locals;
                    to = locals[reached.index()];
                    if locals[ended.index()] != 0 {
                        let wrong = |e: ebbtide_schedule::Error| self.gradient.lost(&e.to_string());
                        driven.schedule.end(to).map_err(wrong)?;
                    }
                }
                self.ran.advanced += to - from;
                Ok(())
            }
            Action::Record { from, to } => {
                self.ran.recorded += to - from;
                let pushes = self.gradient.pushes.get(&sweep.id).map_or(&[][..], Vec::as_slice);
                self.reserve(pushes, to - from)?;
                self.piece(sweep, from, to);
                self.segment(sweep.record)
            }
            Action::Reverse { from, to } => {
                self.ran.reversed += to - from;
                self.piece(sweep, from, to);
                self.segment(sweep.reverse)
            }
            Action::Store { slot, .. } => {
                self.ran.stored += 1;
                let mut buffers = driven.spare.pop().unwrap_or_default();
                for (k, array) in sweep.carried.iter().enumerate() {
                    let bytes = self.frame.bytes(*array);
                    if buffers.len() <= k {
                        buffers.push(self.gradient.spare.take(bytes.len(), self.gradient.device.meter())?);
                    }
                    buffers[k].bytes_mut().copy_from_slice(bytes);
                }
                driven.slots.insert(slot, buffers);
                Ok(())
            }
            Action::Load { slot, .. } => {
                self.ran.loaded += 1;
                let Some(buffers) = driven.slots.get(&slot) else {
                    return Err(self.gradient.lost("a slot is empty"));
                };
                for (array, buffer) in sweep.carried.iter().zip(buffers) {
                    self.frame.bytes_mut(*array).copy_from_slice(buffer.bytes());
                }
                Ok(())
            }
            Action::Drop { slot } => {
                driven.spare.extend(driven.slots.remove(&slot));
                Ok(())
            }
            Action::Turn => Ok(()),
        }
    }

    /// Tells the segments which passes to run.
    fn piece(&mut self, sweep: &Sweep, from: u64, to: u64) {
        let first = self.first(sweep);
        self.frame.scalars.values[sweep.piece.0.index()] = first.wrapping_add(from as i64) as u64;
        self.frame.scalars.values[sweep.piece.1.index()] = first.wrapping_add(to as i64) as u64;
    }

    fn first(&self, sweep: &Sweep) -> i64 {
        let g = self.gradient;
        match sweep.length {
            Length::Unknown { .. } => 0,
            Length::Known(from, _) => {
                from_arguments(&g.program, from, &self.frame.arrays, &self.frame.arguments).unwrap_or(0)
                    as i64
            }
        }
    }

    /// Makes room on the tapes for so many passes.
    fn reserve(&mut self, pushes: &[Pushes], passes: u64) -> Result<()> {
        let mut room: HashMap<ArrayId, u64> = HashMap::new();
        for pushes in pushes {
            let times = self.gradient.times(pushes, &self.frame.arrays, &self.frame.arguments)?;
            *room.entry(pushes.array).or_default() += times * passes;
        }
        for (array, count) in room {
            self.frame.reserve_tape(
                array,
                count as usize,
                &self.gradient.spare,
                self.gradient.device.meter(),
            )?;
        }
        Ok(())
    }
}
