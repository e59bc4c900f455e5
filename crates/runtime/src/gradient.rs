//! Gradients compiled for a device: which gradient program runs, under which plan.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ebbtide_autodiff::{self as autodiff, Hosted, Inner, Pushes, Request};
use ebbtide_ir::{
    self as ir, Access, ArrayId, Block, Facts, Length, Literal, Loop, LoopId, LoopKind, Program, RegionId,
    Role, Stmt, SwappedShapes, ValueId,
};
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_sweep::Cancel;

use crate::arguments::{Arg, bind, bind_first, extents, from_arguments};
use crate::buffer::Spare;
use crate::counters::Event;
use crate::device::{Device, Executable};
use crate::durable::{Frontier, Reached, part_dir};
use crate::error::{Error, Result};
use crate::frame::{Frame, Temp, View};
use crate::hosted::OnYield;
use crate::launch::{undone_arrays, unequal_shapes};
use crate::parts;
use crate::plan::{Budget, Plan};
use crate::planner::{Found, Need, Schedules, free_memory, plan};
use crate::script::{Script, Step, Sweep};
use crate::sweeps::{Means, Ran, Replay, Run};
use crate::tiers::{Reach, Tiers};
use crate::watch::{Observer, Watch, observed};

/// The gradient of a program, compiled for a device, without the types of its parameters.
///
/// Where the program has loops inside loops there are two gradient programs: one keeps the whole tape of inner loops
/// within a pass, one sweeps them when that pass is reversed. Each launch takes the one whose plan is cheaper.
#[derive(Clone)]
pub struct CompiledGradient {
    /// In order of preference.
    variants: Arc<[Variant]>,
    /// For launches in which arrays that the program swaps differ in shape; made when they are first wanted.
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
}

/// One gradient program.
pub(crate) struct Variant {
    inner: Inner,
    /// The program as written.
    pub source: Arc<Program>,
    pub program: Arc<Program>,
    facts: Arc<Facts>,
    pub script: Script,
    /// By loop: what a pass pushes.
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    pub pushes_outside: Vec<Pushes>,
    /// The regions of the source that yield.
    pub hosted: BTreeMap<RegionId, Hosted>,
    /// Which region of the source each region of the program is a copy of.
    pub copies: BTreeMap<RegionId, RegionId>,
    pub shadows: BTreeMap<ArrayId, ArrayId>,
    /// Of a tangent program: the tangent of each array that has one.
    pub tangents: BTreeMap<ArrayId, ArrayId>,
    /// The arrays of which some region keeps a copy.
    undone: Vec<ArrayId>,
    /// The temporaries and the results: when a launch begins, they hold nothing.
    empty: Vec<ArrayId>,
    /// Bytes that the device needs besides arrays.
    scratch: u64,
    /// Compiled when it is first wanted.
    executable: OnceLock<Arc<dyn Executable>>,
}

/// The arrays that have tangents, and these, by the names in the request.
fn tangents(source: &Program, request: &Request) -> BTreeMap<ArrayId, ArrayId> {
    let pair =
        |(array, tangent): (&String, &String)| Some((source.find_array(array)?, source.find_array(tangent)?));
    request.tangents.iter().filter_map(pair).collect()
}

/// Plans made before: planning is worth remembering, since most launches have the shapes of the last one.
type Plans = Arc<Mutex<Vec<(SwappedShapes, Vec<(Vec<Need>, u64)>, Budget, Tiers, Chosen)>>>;

/// As many plans are remembered.
const REMEMBERED: usize = 16;

/// Passes that are assumed of an inner loop whose number of passes is data.
const UNKNOWN_PASSES: f64 = 100.0;

/// The gradient program to run, and how.
#[derive(Clone)]
struct Chosen {
    variant: usize,
    plan: Plan,
    schedules: Schedules,
}

impl Variant {
    /// The gradient programs of a source program, in order of preference.
    fn all(source: &Program, request: &Request, device: &Device) -> Result<Arc<[Variant]>> {
        let recorded = Variant::new(source, request, Inner::Recorded, device);
        if !autodiff::has_inner_loops(source, request) {
            return Ok(Arc::new([recorded?]));
        }
        let swept = Variant::new(source, request, Inner::Swept, device)?;
        // Where an inner loop has no length that is known before, its tape cannot be part of a pass's.
        Ok(recorded.ok().into_iter().chain([swept]).collect())
    }

    /// Two arrays that the source swaps and that differ in shape in a launch with these arguments.
    fn unequal_swap(&self, views: &[View], scalars: &[Literal]) -> Result<Option<(ArrayId, ArrayId)>> {
        let shape = |a: ArrayId| match self.program.array(a).role {
            Role::Temp(_) => extents(&self.program, a, views, scalars),
            _ => {
                Ok(views[a.index()].shape[..self.program.array(a).rank].iter().map(|n| *n as usize).collect())
            }
        };
        for (a, b) in self.source.swaps() {
            if shape(a)? != shape(b)? {
                return Ok(Some((a, b)));
            }
        }
        Ok(None)
    }

    fn new(source: &Program, request: &Request, inner: Inner, device: &Device) -> Result<Variant> {
        let gradient = autodiff::gradient(source, request, inner)?;
        let mut program = gradient.program;
        let script = Script::cut(&mut program);
        let undone = undone_arrays(&program);
        let facts = autodiff::verify_generated(&program)?;
        let empty =
            |a: &ArrayId| matches!(program.array(*a).role, Role::Temp(_) | Role::Param(Access::Write));
        let empty = program.array_ids().filter(empty).collect();
        let scratch = device.backend().scratch_bytes(&program, &facts);
        Ok(Variant {
            inner,
            source: Arc::new(source.clone()),
            program: Arc::new(program),
            facts: Arc::new(facts),
            script,
            pushes: gradient.pushes,
            pushes_outside: gradient.pushes_outside,
            hosted: gradient.hosted,
            copies: gradient.copies,
            shadows: gradient.shadows,
            tangents: tangents(source, request),
            undone,
            empty,
            scratch,
            executable: OnceLock::new(),
        })
    }

    fn executable(&self, device: &Device) -> Result<&Arc<dyn Executable>> {
        if let Some(compiled) = self.executable.get() {
            return Ok(compiled);
        }
        let _span = tracing::debug_span!("compile", program = self.program.name).entered();
        let segments: Vec<&Block> = self.script.segments.iter().collect();
        let compiled = device.backend().compile(&self.program, &self.facts, &segments)?;
        Ok(self.executable.get_or_init(|| compiled))
    }

    pub fn lost(&self, message: &str) -> Error {
        Error::Plan { program: self.program.name.clone(), message: message.to_string() }
    }

    /// What has to be planned: the loops, and the bytes that every plan needs.
    fn needs(&self, views: &[View], scalars: &[Literal]) -> Result<(Vec<Need>, u64)> {
        let mut sizes = vec![0u64; self.program.arrays.len()];
        let mut fixed = 0;
        for id in self.program.array_ids() {
            let decl = self.program.array(id);
            sizes[id.index()] = match decl.role {
                Role::Temp(_) => {
                    let shape = extents(&self.program, id, views, scalars)?;
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
        fixed += self.scratch;
        fixed += self.undone.iter().map(|a| sizes[a.index()]).sum::<u64>();
        for segment in self.reversing_segments(&self.script.steps) {
            for pushes in &self.script.pushes[segment] {
                fixed += sizes[pushes.array.index()] * self.times(pushes, views, scalars)?;
            }
        }
        Ok((self.needs_of(&self.script.steps, &sizes, views, scalars)?, fixed))
    }

    /// Segments of reverse sweeps; where one of them runs a region again, it has a tape of its own.
    fn reversing_segments(&self, steps: &[Step]) -> Vec<usize> {
        let mut segments = Vec::new();
        let mut work: Vec<(&Step, bool)> = steps.iter().map(|step| (step, false)).collect();
        while let Some((step, reversing)) = work.pop() {
            match step {
                Step::Run(segment) => segments.extend(reversing.then_some(*segment)),
                Step::Forward(_) | Step::Host(..) => {}
                Step::Backward(_, inner) => work.extend(inner.iter().map(|s| (s, true))),
                Step::For { body, .. } => work.extend(body.iter().map(|s| (s, reversing))),
                Step::If { then, otherwise, .. } => {
                    work.extend(then.iter().chain(otherwise).map(|s| (s, reversing)));
                }
            }
        }
        segments
    }

    /// The depth of recursion is that of nesting in the source.
    fn needs_of(
        &self,
        steps: &[Step],
        sizes: &[u64],
        views: &[View],
        scalars: &[Literal],
    ) -> Result<Vec<Need>> {
        let mut needs: Vec<Need> = Vec::new();
        for step in steps {
            match step {
                Step::Run(_) | Step::Host(..) => {}
                Step::Forward(sweep) => needs.push(self.need(sweep, sizes, views, scalars)?),
                Step::Backward(id, reverse) => {
                    let mut inner = self.needs_of(reverse, sizes, views, scalars)?;
                    inner.iter_mut().for_each(|need| need.reused = self.reused(*id, need.id, sizes));
                    if let Some(need) = needs.iter_mut().find(|need| need.id == *id) {
                        need.inner = inner;
                    }
                }
                Step::For { body, .. } => needs.extend(self.needs_of(body, sizes, views, scalars)?),
                Step::If { then, otherwise, .. } => {
                    needs.extend(self.needs_of(then, sizes, views, scalars)?);
                    needs.extend(self.needs_of(otherwise, sizes, views, scalars)?);
                }
            }
        }
        Ok(needs)
    }

    fn need(&self, sweep: &Sweep, sizes: &[u64], views: &[View], scalars: &[Literal]) -> Result<Need> {
        let steps = match sweep.length {
            Length::Unknown { .. } => None,
            Length::Known(from, to) => Some(self.passes(from, to, views, scalars).unwrap_or(0)),
        };
        let mut tape = 0;
        for pushes in self.pushes.get(&sweep.id).into_iter().flatten() {
            tape += sizes[pushes.array.index()] * self.times(pushes, views, scalars)?;
        }
        let state = sweep.carried.iter().map(|a| sizes[a.index()]).sum();
        let mut work = 1.0;
        for stmt in &self.script.segments[sweep.advance] {
            if let Stmt::Loop(Loop { body, .. }) = stmt {
                work = self.work(body, views, scalars);
            }
        }
        Ok(Need { id: sweep.id, steps, state, tape, work, hint: sweep.hint, reused: 0, inner: Vec::new() })
    }

    /// What a loop pushes was pushed before it by the pass around it, and has been popped when the loop is swept.
    fn reused(&self, outer: LoopId, inner: LoopId, sizes: &[u64]) -> u64 {
        let pushed =
            |id| self.pushes.get(&id).into_iter().flatten().map(|p| p.array).collect::<BTreeSet<_>>();
        pushed(outer).intersection(&pushed(inner)).map(|a| sizes[a.index()]).sum()
    }

    /// The work of a block: its own is 1, loops in it count with their passes.
    fn work(&self, block: &Block, views: &[View], scalars: &[Literal]) -> f64 {
        let mut work = 1.0;
        for stmt in block {
            match stmt {
                Stmt::Par(_) => {}
                Stmt::Loop(l) => {
                    let passes = match l.kind {
                        LoopKind::For { from, to, .. } => self.passes(from, to, views, scalars),
                        _ => None,
                    };
                    let passes = passes.map_or(UNKNOWN_PASSES, |n| n as f64);
                    work += passes * self.work(&l.body, views, scalars);
                }
                _ => work += stmt.blocks().map(|b| self.work(b, views, scalars) - 1.0).sum::<f64>(),
            }
        }
        work
    }

    /// The number of passes of a loop with these bounds, where it follows from the arguments. Bounds that cannot be
    /// computed (a division by zero) belong to a loop that is not reached, or fail where it is: it has no passes.
    fn passes(&self, from: ValueId, to: ValueId, views: &[View], scalars: &[Literal]) -> Option<u64> {
        let value = |v: ValueId| from_arguments(&self.program, v, views, scalars).map(|bits| bits as i64);
        let alone = |v: ValueId| ir::depends_on_arguments_alone(&self.program, v);
        match (value(from), value(to)) {
            (Some(from), Some(to)) => Some(to.saturating_sub(from).max(0) as u64),
            _ => (alone(from) && alone(to)).then_some(0),
        }
    }

    /// How often one pass makes this push.
    pub fn times(&self, pushes: &Pushes, views: &[View], scalars: &[Literal]) -> Result<u64> {
        let mut times: u64 = 1;
        for (from, to) in &pushes.within {
            let passes = self.passes(*from, *to, views, scalars);
            let unknown =
                || self.lost("the number of passes of an inner loop is data: its tape has no known size");
            times = times.saturating_mul(passes.ok_or_else(unknown)?);
        }
        Ok(times)
    }
}

impl CompiledGradient {
    /// Differentiates a program and compiles its gradient.
    pub fn new(
        source: &Program,
        request: &Request,
        device: &Device,
        budget: Budget,
    ) -> Result<CompiledGradient> {
        let variants = Variant::all(source, request, device)?;
        variants[0].executable(device)?;
        Ok(CompiledGradient {
            variants,
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

    /// The same gradient, with passes that are run again trusted or checked.
    pub fn with_replay(&self, replay: Replay) -> CompiledGradient {
        CompiledGradient { replay, spare: Arc::default(), ..self.clone() }
    }

    /// The same gradient, with launches that stop when `cancel` says so: they return [`Error::Cancelled`] then, and what
    /// receives the results holds anything. A durable one ends the passes that are under way, and keeps what they led to.
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
        let plan = || Ok(self.choose_among(self.variants_for(args)?, args, None)?.plan);
        parts::around(self.program(), plan, |_| String::new())
    }

    /// Runs the gradient program.
    pub fn launch(&self, args: &[Arg<'_>]) -> Result<Ran> {
        parts::around(self.program(), || self.launch_here(args), |_| String::new())
    }

    fn launch_here(&self, args: &[Arg<'_>]) -> Result<Ran> {
        let _span = tracing::debug_span!("gradient", program = self.program().name).entered();
        let variants = self.variants_for(args)?;
        let chosen = self.choose_among(variants, args, None)?;
        self.check_fits(&chosen.plan)?;
        let variant = &variants[chosen.variant];
        let executable = variant.executable(&self.device)?;
        let (views, scalars) = bind(&variant.program, &self.device, args)?;
        let mut frame = self.frame(variant, views, scalars)?;
        executable.forget(&mut frame, &variant.empty);
        frame.reserve_undo(&variant.undone, self.device.meter())?;
        frame.cancel.clone_from(&self.cancel);
        let watch = self.observer.is_some().then(|| self.watch(&chosen.plan));
        let means = self.means(variant, executable.as_ref(), watch);
        let done = frame.done.clone();
        let mut run = Run::new(means, &mut frame, chosen.schedules);
        let ran = match &self.observer {
            Some(observer) if !variant.script.has_sweeps() => {
                observed(observer.as_ref(), &done, || run.follow())
            }
            _ => run.follow(),
        };
        // Before the run's slots go: what was asked for may still want them.
        let settled = executable.settle(&mut frame);
        frame.leave(&self.spare);
        let ran = settled.and(ran)?;
        if let Some(counters) = self.device.backend().counters() {
            counters.add(Event::Replay, ran.loaded);
        }
        Ok(ran)
    }

    /// Runs the gradient program so that it survives its process: what it has done is kept in `dir`, at least once in
    /// each interval `every` between two actions of its schedules. Launched again with the same arguments it goes on
    /// there, to the same bits; if it had ended, the results are read.
    pub fn launch_durable(&self, dir: &Path, every: Duration, args: &[Arg<'_>]) -> Result<Ran> {
        self.launch_durable_on(Arc::new(Disks), dir, every, args)
    }

    /// As [`launch_durable`](Self::launch_durable), on a file system of your own.
    pub fn launch_durable_on(
        &self,
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        every: Duration,
        args: &[Arg<'_>],
    ) -> Result<Ran> {
        let run = || self.launch_durable_here(fs, dir, every, args);
        parts::around(self.program(), run, |_| String::new())
    }

    fn launch_durable_here(
        &self,
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        every: Duration,
        args: &[Arg<'_>],
    ) -> Result<Ran> {
        let _span = tracing::debug_span!("gradient", program = self.program().name).entered();
        // Which gradient program is the cheapest may have changed since the run began; its state belongs to that one.
        let variants = self.variants_for(args)?;
        let chosen = self.choose_among(
            variants,
            args,
            Frontier::follows(&*fs, &part_dir(self.program(), dir), variants),
        )?;
        self.check_fits(&chosen.plan)?;
        let variant = &variants[chosen.variant];
        let executable = variant.executable(&self.device)?;
        let (views, scalars) = bind(&variant.program, &self.device, args)?;
        let mut frontier = Frontier::open(fs, dir, every, variant, &chosen.plan, args)?;
        let mut frame = self.frame(variant, views, scalars)?;
        executable.forget(&mut frame, &variant.empty);
        frame.reserve_undo(&variant.undone, self.device.meter())?;
        // Where every action is made durable, actions are whole.
        let watched = self.observer.is_some() || self.cancel.is_some() || !every.is_zero();
        let watched = parts::any(self.program(), "a look at the run", watched)?;
        let means = self.means(variant, executable.as_ref(), watched.then(|| self.watch(&chosen.plan)));
        let mut run = Run::new(means, &mut frame, chosen.schedules);
        let ran = match frontier.restore(&mut run)? {
            Reached::End => {
                if let Some(watch) = &mut run.watch {
                    watch.end(&run.ran);
                }
                Ok(run.ran)
            }
            Reached::Middle => {
                run.frontier = Some(&mut frontier);
                run.follow().and_then(|ran| run.settle().and_then(|()| run.finish()).map(|()| ran))
            }
        };
        let settled = executable.settle(&mut frame);
        frame.leave(&self.spare);
        let ran = settled.and(ran)?;
        if let Some(counters) = self.device.backend().counters() {
            counters.add(Event::Replay, ran.loaded);
        }
        Ok(ran)
    }

    fn watch(&self, plan: &Plan) -> Watch<'_> {
        Watch::new(self.observer.as_deref(), self.cancel.as_ref(), plan)
    }

    fn means<'a>(
        &'a self,
        variant: &'a Variant,
        executable: &'a dyn Executable,
        watch: Option<Watch<'a>>,
    ) -> Means<'a> {
        Means {
            variant,
            executable,
            device: &self.device,
            spare: &self.spare,
            tiers: &self.tiers,
            host: self.host.as_deref(),
            replay: self.replay,
            watch,
        }
    }

    /// A frame in memory that earlier launches left.
    fn frame(&self, variant: &Variant, views: Vec<View>, scalars: Vec<Literal>) -> Result<Frame> {
        let program = &variant.program;
        let mut temps = Vec::new();
        for id in program.array_ids() {
            if let Role::Temp(_) = program.array(id).role {
                let shape = extents(program, id, &views, &scalars)?;
                temps.push(Temp::reused(program, id, &shape, &self.spare, self.device.meter())?);
            }
        }
        Frame::with(program, views, scalars, ir::Scalars::of(program), temps, self.device.meter())
    }

    /// The gradient programs for arrays of these shapes: the usual ones rely on swapped arrays being equal in shape.
    fn variants_for(&self, args: &[Arg<'_>]) -> Result<&Arc<[Variant]>> {
        let usual = &self.variants[0];
        let (views, scalars) = bind_first(&usual.program, &self.device, args)?;
        let Some(pair) = usual.unequal_swap(&views, &scalars)? else { return Ok(&self.variants) };
        if let Some(variants) = self.unequal.get() {
            return Ok(variants);
        }
        let source = usual.source.with_unknown_shapes();
        if let Err(error) = ir::verify(&source) {
            return Err(unequal_shapes(&source, pair, &error));
        }
        let variants = Variant::all(&source, &self.request, &self.device)?;
        Ok(self.unequal.get_or_init(|| variants))
    }

    /// The gradient program whose plan is the cheapest, or the only one that will do.
    fn choose_among(&self, variants: &[Variant], args: &[Arg<'_>], only: Option<usize>) -> Result<Chosen> {
        let only = parts::agree_variant(self.program(), only)?;
        let mut needs: Vec<(Vec<Need>, u64)> = Vec::new();
        let mut of_variant = HashMap::new();
        let mut failed = None;
        for (k, variant) in variants.iter().enumerate().filter(|(k, _)| only.is_none_or(|only| only == *k)) {
            let (views, scalars) = bind_first(&variant.program, &self.device, args)?;
            match variant.needs(&views, &scalars) {
                Ok(found) => {
                    of_variant.insert(needs.len(), k);
                    needs.push(found);
                }
                Err(error) => failed = Some(error),
            }
        }
        // All parts of a grid agree before any of them looks at what it remembers.
        let mut given = self.budget;
        let mut agreed = None;
        if parts::together(self.program()).is_some() {
            let mut free = self.free_bytes();
            parts::agree(self.program(), &mut needs, &mut given, &mut free)?;
            let reach = self.reach(&needs, self.whole_budget(given)?, free)?;
            agreed = Some((free, parts::agree_reach(self.program(), reach)?));
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let swapped = variants[0].source.swapped;
        let remembered = plans
            .iter()
            .find(|p| (p.0, &p.1, p.2, &p.3) == (swapped, &needs, given, &self.tiers))
            .map(|p| p.4.clone());
        if let (Some(known), None) = (remembered, only) {
            return Ok(known);
        }
        let _span = tracing::debug_span!("plan", program = self.program().name).entered();
        let budget = self.whole_budget(given)?;
        let (free, reach) = match agreed {
            Some(agreed) => agreed,
            None => {
                let free = self.free_bytes();
                (free, self.reach(&needs, budget, free)?)
            }
        };
        let mut best: Option<(usize, Found)> = None;
        for (at, (needs, fixed)) in needs.iter().enumerate() {
            match plan(&self.program().name, needs, *fixed, budget, free, reach.as_ref()) {
                Ok(found) => {
                    let k = of_variant[&at];
                    if best.as_ref().is_none_or(|(old, cheapest)| {
                        self.prefers(variants, needs, (k, &found), (*old, cheapest))
                    }) {
                        best = Some((k, found));
                    }
                }
                // The least that works is that of the gradient program which needs the least.
                Err(error) => {
                    let least = |error: &Error| match error {
                        Error::BudgetTooSmall { minimum, .. } => *minimum,
                        _ => u64::MAX,
                    };
                    if failed.as_ref().is_none_or(|old| least(&error) < least(old)) {
                        failed = Some(error);
                    }
                }
            }
        }
        let Some((variant, mut found)) = best else {
            return Err(failed.unwrap_or_else(|| self.variants[0].lost("there is no plan")));
        };
        if let Some((first, fixed)) = needs.first()
            && let Ok(all) = plan(&self.program().name, first, *fixed, Budget::StoreAll, free, None)
        {
            found.plan.store_all_bytes = all.plan.store_all_bytes;
        }
        found.plan.beyond = (self.tiers.host, self.tiers.disk.as_ref().map(|(_, bytes)| *bytes));
        let chosen = Chosen { variant, plan: found.plan, schedules: found.schedules };
        if only.is_none() {
            if plans.len() >= REMEMBERED {
                plans.remove(0);
            }
            plans.push((swapped, needs, given, self.tiers.clone(), chosen.clone()));
        }
        Ok(chosen)
    }

    /// The budget of the device's memory: where that is the host's, what was said of host memory belongs to it.
    fn whole_budget(&self, budget: Budget) -> Result<Budget> {
        match budget {
            Budget::Bytes(bytes) if self.device.backend().memory().is_none() => {
                Ok(Budget::Bytes(bytes.saturating_add(self.tiers.host.unwrap_or(0))))
            }
            Budget::StoreAll | Budget::Revolve { .. } | Budget::Periodic { .. } if !self.tiers.is_empty() => {
                let message = "a schedule that is chosen by hand keeps its states in memory: host memory and disk \
                               extend `.memory(..)`";
                Err(self.variants[0].lost(message))
            }
            budget => Ok(budget),
        }
    }

    /// The memory of the device that is free.
    fn free_bytes(&self) -> u64 {
        let own = self.device.backend().memory().and_then(|memory| memory.free_bytes());
        own.unwrap_or_else(free_memory)
    }

    /// Refuses a launch for which there is not enough memory, unless its schedule was chosen by hand. To look takes as long
    /// as a small launch.
    fn check_fits(&self, plan: &Plan) -> Result<()> {
        const WORTH_A_LOOK: u64 = 256 << 20;
        if matches!(self.budget, Budget::Revolve { .. } | Budget::Periodic { .. }) {
            return Ok(());
        }
        let needed = plan.peak_bytes().saturating_sub(self.spare.bytes());
        if needed < WORTH_A_LOOK {
            return Ok(());
        }
        match self.free_bytes() {
            free if free < needed => {
                Err(Error::DoesNotFit { program: self.program().name.clone(), needed, free })
            }
            _ => Ok(()),
        }
    }

    /// What is beyond memory, where a plan may want it: then it is seen how fast it is.
    fn reach(&self, needs: &[(Vec<Need>, u64)], budget: Budget, free: u64) -> Result<Option<Reach>> {
        let all = |(needs, fixed): &(Vec<Need>, u64)| fixed + needs.iter().map(Need::store_all).sum::<u64>();
        let most = match budget {
            Budget::Bytes(bytes) => bytes,
            _ => free / 2,
        };
        let wanted = needs.iter().any(|needs| all(needs) > most);
        (wanted && !self.tiers.is_empty()).then(|| self.tiers.reach(&self.device)).transpose()
    }

    /// Is the later variant `k` better than `old`?
    fn prefers(
        &self,
        variants: &[Variant],
        needs: &[Need],
        (k, found): (usize, &Found),
        (old, cheapest): (usize, &Found),
    ) -> bool {
        let swept = variants[k].inner == Inner::Swept && variants[old].inner == Inner::Recorded;
        match self.budget {
            // A schedule for every loop is asked for.
            Budget::Revolve { .. } | Budget::Periodic { .. } => swept,
            _ => found.cost < cheapest.cost || needs.iter().any(Need::has_inner_hint),
        }
    }
}
