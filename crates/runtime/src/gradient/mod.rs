//! Gradients compiled for a device: which gradient program runs, under which plan.

mod accumulated;
mod attempt;
mod choose;
mod compile;
mod cost;
mod counts;
mod given_data;
mod guesses;
mod last_needs;
mod lent;
pub(crate) mod offload;
mod parts;
pub(crate) mod plan;
pub(crate) mod planner;
pub(crate) mod ran;
pub(crate) mod run;
pub(crate) mod steps;
pub(crate) mod tiers;
pub(crate) mod watch;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ebbtide_autodiff::Request;
use ebbtide_ir::{Literal, Program};
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_sweep::Cancel;

use crate::array::arguments::{Arg, bind};
use crate::device::Device;
use crate::device::counters::Event;
use crate::device::frame::{Frame, View};
use crate::error::Result;
use crate::gradient::accumulated::Accumulated;
use crate::gradient::compile::Variant;
use crate::gradient::plan::{Budget, Plan};
use crate::gradient::ran::{Ran, Replay};
use crate::gradient::run::durable::{Frontier, part_dir};
use crate::gradient::run::hosted::OnYield;
use crate::gradient::tiers::Tiers;
use crate::gradient::watch::{Observer, Watch};
use crate::launch::parts::around;
use crate::memory::spare::Spare;
use attempt::{Attempt, Before, Planning};
use choose::{Chosen, Plans, ShapesByName, with_alike_shapes};

/// The gradient of a program, compiled for a device, without the types of its parameters.
///
/// Where the program has loops inside loops there are two gradient programs: one keeps the whole tape of inner loops
/// within an iteration, one sweeps them when that iteration is reversed. Each launch takes the one whose plan is cheaper.
#[derive(Clone)]
pub struct CompiledGradient {
    /// In order of preference.
    variants: Arc<[Variant]>,
    /// For launches in which arrays that look alike differ in shape; made when they are first wanted.
    unlike: Arc<OnceLock<Arc<[Variant]>>>,
    /// For those in which arrays that the program swaps differ, likewise.
    unequal: Arc<OnceLock<Arc<[Variant]>>>,
    request: Arc<Request>,
    device: Device,
    budget: Budget,
    tiers: Tiers,
    plans: Plans,
    /// What launches leave for the next one, so that it allocates nothing.
    spare: Arc<Spare>,
    /// Whom to ask where the program yields.
    host: Option<Arc<OnYield>>,
    replay: Replay,
    /// What may ask launches to stop.
    cancel: Option<Cancel>,
    observer: Option<Arc<Observer>>,
    accumulated: Accumulated,
}

impl CompiledGradient {
    /// Differentiates a program and compiles its gradient.
    pub fn new(
        source: &Program,
        request: &Request,
        device: &Device,
        budget: Budget,
    ) -> Result<CompiledGradient> {
        let variants = Variant::all(&with_alike_shapes(source), request, device)?;
        variants[0].executable(device)?;
        Ok(CompiledGradient {
            variants,
            unlike: Arc::default(),
            unequal: Arc::default(),
            request: Arc::new(request.clone()),
            device: device.clone(),
            budget,
            tiers: Tiers::default(),
            plans: Plans::default(),
            spare: Arc::default(),
            host: None,
            replay: Replay::Trusted,
            cancel: None,
            observer: None,
            accumulated: Accumulated::of(source, request),
        })
    }

    /// The same gradient under another budget; nothing is compiled again.
    pub fn with_budget(&self, budget: Budget) -> CompiledGradient {
        CompiledGradient { budget, spare: Arc::default(), ..self.clone() }
    }

    /// The same gradient with this room beyond memory; nothing is compiled again.
    pub fn with_tiers(&self, tiers: Tiers) -> CompiledGradient {
        CompiledGradient { tiers, spare: Arc::default(), ..self.clone() }
    }

    /// The room beyond memory.
    pub fn tiers(&self) -> &Tiers {
        &self.tiers
    }

    /// The same gradient of a program that can yield: `host` is asked what to do, once for each yield.
    pub fn with_host(&self, host: Arc<OnYield>) -> CompiledGradient {
        CompiledGradient { host: Some(host), spare: Arc::default(), ..self.clone() }
    }

    /// The same gradient, with iterations that are run again trusted or checked.
    pub fn with_replay(&self, replay: Replay) -> CompiledGradient {
        CompiledGradient { replay, spare: Arc::default(), ..self.clone() }
    }

    /// The same gradient, with launches that stop when `cancel` says so: they return
    /// [`Error::Cancelled`](crate::Error::Cancelled) then, and what receives the results holds anything. A durable one ends the
    /// iterations that are under way, and keeps what they led to.
    pub fn cancel_with(&self, cancel: &Cancel) -> CompiledGradient {
        CompiledGradient { cancel: Some(cancel.clone()), spare: Arc::default(), ..self.clone() }
    }

    /// The same gradient, with launches that tell `observer` now and then how far they are, and at their end.
    pub fn observe(&self, observer: Arc<Observer>) -> CompiledGradient {
        CompiledGradient { observer: Some(observer), spare: Arc::default(), ..self.clone() }
    }

    /// The gradient program; the one that keeps the tapes of inner loops, where there are two.
    pub fn program(&self) -> &Program {
        &self.variants[0].program
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The generated source, where the device generates any and it has been compiled.
    pub fn source(&self) -> Option<&str> {
        self.variants.iter().find_map(|v| v.executable.get())?.source()
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
        let plan = || Ok(self.choose_among(self.variants_for(args)?, args, &ShapesByName::new(), None)?.plan);
        let plan = around(self.program(), plan, |_| String::new())?;
        Ok(Plan { added_to: self.accumulated.not_zero(args), ..plan })
    }

    /// Runs the gradient program. A result of an array whose shape the host changes has that shape in the end. If it fails, the
    /// arguments are as they were, and what the arrays for results hold is unspecified.
    pub fn launch(&self, args: &mut [Arg<'_>]) -> Result<Ran> {
        around(self.program(), || self.launch_here(args), |_| String::new())
    }

    fn launch_here(&self, args: &mut [Arg<'_>]) -> Result<Ran> {
        let _span = tracing::debug_span!("gradient", program = self.program().name).entered();
        let variants = self.variants_for(args)?;
        self.check_results(args)?;
        self.accumulated.trace(args);
        let chosen = self.choose_among(variants, args, &ShapesByName::new(), None)?;
        self.check_fits(&chosen.plan)?;
        self.attempts(variants, args, chosen, None, None)
    }

    /// Runs the gradient program, and again under another plan where arrays have grown beyond the one it has, or loops have more
    /// iterations.
    fn attempts(
        &self,
        variants: &[Variant],
        args: &mut [Arg<'_>],
        mut chosen: Chosen,
        only: Option<usize>,
        mut frontier: Option<Frontier>,
    ) -> Result<Ran> {
        let mut before = Before::default();
        let (ran, moved) = loop {
            let planning = Planning { gradient: self, variants, args, chosen: &chosen, only };
            match self.attempt(&planning, before, frontier.as_mut())? {
                Attempt::Done(ran, moved) => break (ran, moved),
                Attempt::Again(known, plan) => (before, chosen) = (known, plan),
            }
        };
        moved.into_iter().for_each(|result| result.hand_out(args));
        if let Some(counters) = self.device.backend().counters() {
            counters.add(Event::Replay, ran.loaded);
        }
        Ok(ran)
    }

    /// Runs the gradient program so that it survives its process: what it has done is kept in `dir`, at least once in
    /// each interval `every` between two actions of its schedules. Launched again with the same arguments it continues
    /// there, to the same bits; if it had ended, the results are read.
    pub fn launch_durable(&self, dir: &Path, every: Duration, args: &mut [Arg<'_>]) -> Result<Ran> {
        self.launch_durable_on(Arc::new(Disks), dir, every, args)
    }

    /// As [`launch_durable`](Self::launch_durable), on a file system of your own.
    pub fn launch_durable_on(
        &self,
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        every: Duration,
        args: &mut [Arg<'_>],
    ) -> Result<Ran> {
        let run = || self.launch_durable_here(fs, dir, every, args);
        around(self.program(), run, |_| String::new())
    }

    fn launch_durable_here(
        &self,
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        every: Duration,
        args: &mut [Arg<'_>],
    ) -> Result<Ran> {
        let _span = tracing::debug_span!("gradient", program = self.program().name).entered();
        // Which gradient program is the cheapest may have changed since the run began; its state belongs to that one.
        let variants = self.variants_for(args)?;
        self.check_results(args)?;
        let follows = Frontier::follows(&*fs, &part_dir(self.program(), dir), variants);
        let only = match follows {
            None => self.without_guesses(variants, args)?,
            follows => follows,
        };
        let chosen = self.choose_among(variants, args, &ShapesByName::new(), only)?;
        self.check_fits(&chosen.plan)?;
        let only = Some(chosen.variant);
        let variant = &variants[chosen.variant];
        variant.executable(&self.device)?;
        bind(&variant.program, &self.device, args)?;
        let frontier = Frontier::open(fs, dir, every, variant, &chosen.plan, args)?;
        self.attempts(variants, args, chosen, only, Some(frontier))
    }

    /// The gradient program for a run that may be interrupted anywhere: not one that may have to begin again, or that keeps no state
    /// in loops of which nobody knows how long they run.
    fn without_guesses(&self, variants: &[Variant], args: &[Arg<'_>]) -> Result<Option<usize>> {
        let Some(last) = variants.len().checked_sub(1).filter(|last| *last > 0) else { return Ok(None) };
        let (views, scalars) = self.bound(&variants[0], args, &ShapesByName::new())?;
        Ok((!variants[0].guessed_arrays(&views, &scalars).is_empty()).then_some(last))
    }

    fn watch(&self, plan: &Plan) -> Watch<'_> {
        Watch::new(self.observer.as_deref(), self.cancel.as_ref(), plan)
    }

    /// A frame in memory that earlier launches left.
    fn frame(&self, variant: &Variant, views: Vec<View>, scalars: Vec<Literal>) -> Result<Frame> {
        let mut frame = Frame::new(&variant.program, views, scalars, &self.spare, self.device.meter())?;
        frame.pack_tapes(variant.executable(&self.device)?.packed_tapes());
        Ok(frame)
    }
}
