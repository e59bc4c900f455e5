//! One attempt at a gradient run: it ends, or it is to be begun again under a plan for arrays that have grown, or with more room on
//! its tapes.

use ebbtide_ir::{self as ir, ArrayId, Param, Role};

use super::choose::{Chosen, ShapesByName};
use super::{CompiledGradient, parts};
use crate::array::arguments::{Arg, bind};
use crate::device::frame::Frame;
use crate::error::{Error, Result};
use crate::gradient::compile::Variant;
use crate::gradient::plan::{Budget, Plan};
use crate::gradient::planner::Need;
use crate::gradient::ran::Ran;
use crate::gradient::run::durable::{Frontier, Reached, of_restored};
use crate::gradient::run::hosted::Log;
use crate::gradient::run::room::{Asking, PlanAnew, ask_for_room};
use crate::gradient::run::{Means, Run};
use crate::gradient::watch::observed;
use crate::launch::yielded::Yielded;
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Handed;

/// What an attempt knows from the ones before it: the host is not asked again.
#[derive(Default)]
pub(super) struct Before {
    pub log: Log,
    pub budget: Option<Budget>,
    pub ran: Ran,
}

/// How an attempt ended.
pub(super) enum Attempt {
    /// With results; these arrays have other shapes than they were launched with, or are elsewhere.
    Done(Ran, Vec<Moved>),
    /// It is to be begun again.
    Again(Before, Chosen),
}

/// A result that is not in the memory that the caller gave for it.
pub(super) struct Moved {
    /// Which argument it is.
    argument: usize,
    shape: Vec<usize>,
    buffer: Buffer,
}

impl Moved {
    /// Gives it to the caller.
    pub fn hand_out(self, args: &mut [Arg<'_>]) {
        if let Some(Arg::Write(array)) = args.get_mut(self.argument) {
            array.replace(&self.shape, self.buffer);
        }
    }
}

/// Plans for a launch with these arguments.
pub(super) struct Planning<'p, 'a> {
    pub gradient: &'p CompiledGradient,
    pub variants: &'p [Variant],
    pub args: &'p [Arg<'a>],
    pub chosen: &'p Chosen,
    /// The only gradient program that will do, if one is.
    pub only: Option<usize>,
}

impl PlanAnew for Planning<'_, '_> {
    fn plan_anew(&self, shapes: &ShapesByName, budget: Option<Budget>) -> Result<Option<Chosen>> {
        let (gradient, plan) = (self.gradient, &self.chosen.plan);
        let variant = &self.variants[self.chosen.variant];
        let (views, scalars) = gradient.bound(variant, self.args, shapes)?;
        let (needs, fixed) = variant.needs(&views, &scalars)?;
        let mut lengths = plan.loops.iter().map(|l| l.steps);
        let same = needs.iter().all(|need| has_lengths(need, &mut lengths));
        let peak = grown_peak(plan, &needs, fixed);
        let room = match (budget.unwrap_or(gradient.budget), plan.budget) {
            (Budget::Bytes(bytes), _) => Some(bytes),
            (Budget::Auto, None) => Some(gradient.device.free_bytes() / 2),
            (_, planned) => planned,
        };
        if same && room.is_none_or(|room| peak <= room) {
            gradient.check_bytes(peak)?;
            return Ok(None);
        }
        let gradient = match budget {
            Some(budget) => &gradient.with_budget(budget),
            None => gradient,
        };
        let chosen = gradient.choose_among(self.variants, self.args, shapes, self.only)?;
        gradient.check_bytes(chosen.plan.peak_bytes())?;
        Ok(Some(chosen))
    }

    fn is_of_this_program(&self, chosen: &Chosen) -> bool {
        chosen.variant == self.chosen.variant
    }
}

/// Have a loop and those inside it these lengths? The depth of recursion is that of nesting in the source.
fn has_lengths(need: &Need, lengths: &mut impl Iterator<Item = Option<u64>>) -> bool {
    let own = lengths.next() == Some(need.steps);
    need.inner.iter().fold(own, |all, inner| has_lengths(inner, lengths) && all)
}

/// What a run under this plan holds at most, if its arrays are as these needs say.
fn grown_peak(plan: &Plan, needs: &[Need], fixed: u64) -> u64 {
    fn of<'l>(need: &Need, loops: &mut impl Iterator<Item = &'l super::plan::LoopPlan>) -> u64 {
        let Some(planned) = loops.next() else { return 0 };
        let (slots, tape) = (planned.totals.memory.peak_slots, planned.totals.peak_tape);
        let inner = need.inner.iter().map(|n| of(n, loops).saturating_sub(n.reused)).max().unwrap_or(0);
        // Those that are not in memory pass through it.
        let passage = if planned.away.passage_bytes > 0 { need.state } else { 0 };
        let own = slots.saturating_mul(need.state).saturating_add(tape.saturating_mul(need.tape));
        own.saturating_add(inner).saturating_add(passage)
    }
    let mut loops = plan.loops.iter();
    needs.iter().fold(fixed, |all, need| all.saturating_add(of(need, &mut loops)))
}

impl Variant {
    /// Did a run push more than there was room for? Then the tape that it met the end of, where the error tells.
    fn full_tape(&self, error: &Error) -> Option<Option<ArrayId>> {
        let Error::Program(ir::Error::Run { fault, .. }) = error else { return None };
        match fault {
            ir::Fault::Tape => Some(None),
            ir::Fault::OutOfBounds { array, .. } => {
                let tape = self.program.find_array(array)?;
                matches!(self.program.array(tape).role, Role::Tape(_)).then_some(Some(tape))
            }
            _ => None,
        }
    }

    /// Makes the next attempt expect more iterations of loops that nobody can count; `false` where there are none.
    fn expect_more(&self, full: Option<ArrayId>, frame: &Frame) -> bool {
        let guessed = self.guessed_arrays(&frame.arrays, &frame.arguments);
        if guessed.is_empty() || self.guesses.are_given_up() {
            return false;
        }
        self.last_needs.forget();
        let grown = match full {
            Some(tape) => self.guesses.lengthen(tape),
            None => self.guesses.grow(&guessed, &frame.tapes),
        };
        if !grown {
            self.guesses.give_up();
        }
        true
    }
}

impl Planning<'_, '_> {
    /// The plan of the next attempt of a run whose tapes had too little room. Where there is no memory for more, the gradient program
    /// that runs loops again instead of keeping their tapes is taken.
    fn with_more_room(&self) -> Result<Chosen> {
        let gradient = self.gradient;
        let choose = || {
            let chosen = gradient.choose_among(self.variants, self.args, &ShapesByName::new(), self.only)?;
            gradient.check_fits(&chosen.plan).map(|()| chosen)
        };
        tracing::debug!(
            "a loop had more iterations than were expected: the run is begun again with more room"
        );
        choose().or_else(|_| {
            let variant = &self.variants[self.chosen.variant];
            variant.guesses.give_up();
            variant.last_needs.forget();
            choose()
        })
    }
}

impl CompiledGradient {
    /// Runs the gradient program under a plan, durably or not, with what earlier attempts know.
    pub(super) fn attempt(
        &self,
        planning: &Planning<'_, '_>,
        mut before: Before,
        mut frontier: Option<&mut Frontier>,
    ) -> Result<Attempt> {
        let Planning { chosen, args, .. } = *planning;
        let variant = &planning.variants[chosen.variant];
        let executable = variant.executable(&self.device)?;
        let mut frame = self.framed(variant, args, &mut before.budget)?;
        executable.forget(&mut frame, &variant.empty);
        let watched = match &frontier {
            None => {
                frame.cancel.clone_from(&self.cancel);
                self.observer.is_some()
            }
            // Where every action is made durable, actions are whole.
            Some(frontier) => {
                let watched =
                    self.observer.is_some() || self.cancel.is_some() || !frontier.is_of_every_action();
                parts::any(self.program(), "a look at the run", watched)?
            }
        };
        let means = Means {
            variant,
            executable: executable.as_ref(),
            device: &self.device,
            spare: &self.spare,
            tiers: &self.tiers,
            host: self.host.as_deref(),
            replay: self.replay,
            watch: watched.then(|| self.watch(&chosen.plan)),
            planner: planning,
        };
        let done = frame.done.clone();
        let mut run = Run::new(means, &mut frame, chosen.schedules.clone());
        let first = before.log.reshapes.is_empty();
        (run.ran, run.budget) = (before.ran, before.budget);
        run.take_log(before.log)?;
        let ran = match (&mut frontier, &self.observer) {
            (None, Some(observer)) if !variant.steps.has_sweeps() => {
                observed(observer.as_ref(), &done, || run.follow())
            }
            (None, _) => run.follow(),
            (Some(frontier), _) => run.follow_durably(frontier, first),
        };
        if let (Err(_), Some(chosen)) = (&ran, run.anew.take()) {
            let before = Before { log: std::mem::take(&mut run.log), budget: run.budget, ran: run.ran };
            executable.settle(&mut frame)?;
            // What has the sizes of before is of no use.
            drop(frame);
            self.spare.release();
            return Ok(Attempt::Again(before, chosen));
        }
        // Before the run's slots go: what was asked for may still want them.
        let settled = run.settle();
        let error = ran.as_ref().err().or(settled.as_ref().err());
        if let Some(full) = error.and_then(|error| variant.full_tape(error))
            && variant.expect_more(full, run.frame)
        {
            let before = Before { log: Log::default(), budget: run.budget, ran: Ran::default() };
            drop(run);
            drop(frame);
            self.spare.release();
            return Ok(Attempt::Again(before, planning.with_more_room()?));
        }
        let moved = match ran.is_ok() && settled.is_ok() {
            true => run.moved_results(args),
            false => Ok(Vec::new()),
        };
        drop(run);
        frame.leave(&self.spare);
        // What went wrong first: a fault of a segment is told again by who waits for it once more.
        let ran = ran?;
        settled?;
        Ok(Attempt::Done(ran, moved?))
    }
}

impl CompiledGradient {
    /// A frame for these arguments; where there is no memory for it, the host is asked for some.
    fn framed(&self, variant: &Variant, args: &[Arg<'_>], budget: &mut Option<Budget>) -> Result<Frame> {
        let asking = Asking { host: self.host.as_deref(), device: &self.device, spare: &self.spare };
        loop {
            let (views, scalars) = bind(&variant.program, &self.device, args)?;
            let frame = self.frame(variant, views, scalars).and_then(|mut frame| {
                frame.reserve_undo(&variant.undone, self.device.meter())?;
                Ok(frame)
            });
            match frame {
                Err(error @ Error::OutOfMemory { .. }) => {
                    ask_for_room(asking, &Yielded::nowhere(&variant.source), budget, error)?;
                }
                framed => return framed,
            }
        }
    }
}

impl<'a> Run<'a> {
    /// Continues where another process left the run, if this is its first attempt, and makes it durable.
    fn follow_durably(&mut self, frontier: &'a mut Frontier, first: bool) -> Result<Ran> {
        let reached = if first { frontier.restore(self)? } else { Reached::Beginning };
        if let Reached::End = reached {
            if let Some(watch) = &mut self.watch {
                watch.end(&self.ran);
            }
            return Ok(self.ran);
        }
        if let Some(watch) = &mut self.watch {
            watch.found(&self.ran);
        }
        self.frontier = Some(frontier);
        let ran = self.follow().and_then(|ran| self.settle().and_then(|()| self.finish()).map(|()| ran));
        match reached {
            Reached::Middle { short } => ran.map_err(|error| of_restored(error, short)),
            _ => ran,
        }
    }

    /// The results that are not in the memory that the caller gave for them.
    fn moved_results(&mut self, args: &[Arg<'_>]) -> Result<Vec<Moved>> {
        let program = &self.variant.program;
        let mut moved = Vec::new();
        for (argument, (param, arg)) in program.params.iter().zip(args).enumerate() {
            let (Param::Array(id), Arg::Write(array)) = (param, arg) else { continue };
            let (id, view): (ArrayId, _) = (*id, self.frame.arrays[id.index()]);
            if view.address == array.buffer.address() {
                continue;
            }
            let shape = view.shape[..program.array(id).rank].iter().map(|n| *n as usize).collect();
            let mut buffers = [Buffer::zeroed(view.bytes, self.device.meter())?];
            buffers[0].hand_over(Handed::ForWriting)?;
            self.executable.store(self.frame, &[id], &mut buffers)?;
            let [buffer] = buffers;
            moved.push(Moved { argument, shape, buffer });
        }
        // Most runs have none, and have been waited for.
        if !moved.is_empty() {
            self.settle()?;
        }
        Ok(moved)
    }
}

impl CompiledGradient {
    /// An error where there is not so much memory.
    pub(super) fn check_bytes(&self, needed: u64) -> Result<()> {
        const WORTH_A_LOOK: u64 = 256 << 20;
        if matches!(self.budget, Budget::Revolve { .. } | Budget::Periodic { .. }) {
            return Ok(());
        }
        let needed = needed.saturating_sub(self.spare.bytes());
        if needed < WORTH_A_LOOK {
            return Ok(());
        }
        match self.device.free_bytes() {
            free if free < needed => {
                Err(Error::DoesNotFit { program: self.program().name.clone(), needed, free })
            }
            _ => Ok(()),
        }
    }
}
