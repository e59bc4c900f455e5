//! Gradient runs that survive their process.
//!
//! Between two actions of an outermost sweep a run is: the arrays, tapes and slots that it holds, its scalars, and how
//! far its script and its schedules have come. All that is written, now and then, as one state of the run's directory;
//! whoever takes the run up reads the last one that is whole.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_ir::{Access, ArrayId, Param, Program, Role};
use ebbtide_schedule::{Action, AnySchedule, Slot, Tier};
use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Budget, Dtype, Identity, Manifest, RunDir, State};

use crate::arguments::Arg;
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::gradient::Variant;
use crate::hosted::Log;
use crate::plan::Plan;
use crate::script::{Step, Sweep};
use crate::sweeps::{Driven, Ran, Run};

/// Where a run is made durable.
pub(crate) struct Frontier {
    dir: RunDir,
    every: Duration,
    last: Instant,
    /// How many passes there are to reverse, where that is known.
    to_reverse: Option<u64>,
}

/// How far a run had come.
pub(crate) enum Reached {
    Middle,
    End,
}

impl Frontier {
    /// Which of these gradient programs the run in a directory follows, if there is a run.
    pub fn follows(dir: &Path, variants: &[Variant]) -> Option<usize> {
        let manifest = Manifest::read(&Disks, dir).ok()?;
        variants.iter().position(|variant| hash(variant) == manifest.identity.hash())
    }

    /// The directory of a run: made, or found as another process left it.
    pub fn open(
        dir: &Path,
        every: Duration,
        variant: &Variant,
        plan: &Plan,
        args: &[Arg<'_>],
    ) -> Result<Frontier> {
        let identity = identity(variant, args);
        let fs = Arc::new(Disks);
        let dir = if dir.join("manifest.json").exists() {
            let found = RunDir::open(fs, dir)?;
            found.manifest().check(dir, &identity)?;
            found.note_opened();
            found
        } else {
            let budget = Budget { slots: 0, block: 1, disk_slots: 0, disk_cost: 0 };
            RunDir::create(fs, dir, Manifest::new(identity, "of a compiled program", None, budget))?
        };
        Ok(Frontier { dir, every, last: Instant::now(), to_reverse: plan.to_reverse() })
    }

    /// Is it time to make the run durable?
    pub fn is_due(&self) -> bool {
        self.last.elapsed() >= self.every
    }

    /// Returns when all that was committed is safe.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.dir.flush()?)
    }

    /// Brings a run to where its directory says that it was.
    pub fn restore(&mut self, run: &mut Run<'_>) -> Result<Reached> {
        let (recovered, _) = self.dir.take_recovered();
        for sentence in &recovered.damage {
            crate::warn(&format!("durable gradient: {sentence}"));
        }
        let Some((_, state)) = recovered.adjoint else { return Ok(Reached::Middle) };
        if recovered.finished {
            for array in results(&run.variant.program) {
                run.set_contents(array, &state.get_vec(&format!("array {}", array.index()))?)?;
            }
            run.ran = read_ran(&state)?;
            return Ok(Reached::End);
        }
        run.read(&state)?;
        Ok(Reached::Middle)
    }
}

fn hash(variant: &Variant) -> String {
    format!("{:?}", variant.program.hash())
}

/// What is computed: the gradient program and everything that its result depends on.
fn identity(variant: &Variant, args: &[Arg<'_>]) -> Identity {
    let program = &variant.program;
    let mut identity = Identity::new(variant.source.name.clone(), hash(variant));
    for (param, arg) in program.params.iter().zip(args) {
        let array = match (param, arg) {
            (Param::Array(a), Arg::Read(array)) => Some((a, *array)),
            (Param::Array(a), Arg::Write(array)) => Some((a, &**array)),
            (Param::Scalar(s), Arg::Scalar(literal)) => {
                let name = program.scalars[s.index()].name.clone();
                identity = identity.input(name, format!("{literal:?}"));
                None
            }
            _ => None,
        };
        // What receives results is no input.
        if let Some((id, array)) = array
            && program.array(*id).role == Role::Param(Access::Read)
        {
            let name = program.array(*id).name.clone();
            identity = identity.input(format!("shape of {name}"), format!("{:?}", array.shape()));
            identity = identity.input_array(name, array.bytes());
        }
    }
    identity
}

/// The arrays that receive results.
fn results(program: &Program) -> Vec<ArrayId> {
    program.array_ids().filter(|a| program.array(*a).role == Role::Param(Access::Write)).collect()
}

fn put_ran(state: &mut State, ran: &Ran) -> Result<()> {
    let counts = [
        ran.advanced,
        ran.recorded,
        ran.reversed,
        ran.stored,
        ran.loaded,
        ran.to_host,
        ran.from_host,
        ran.to_disk,
        ran.from_disk,
    ];
    Ok(state.put("ran", &counts)?)
}

fn read_ran(state: &State) -> Result<Ran> {
    let mut counts = [0u64; 9];
    // Directories of earlier versions have fewer.
    state.get_vec("ran")?.into_iter().zip(&mut counts).for_each(|(count, place): (u64, _)| *place = count);
    let [advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk] = counts;
    Ok(Ran { advanced, recorded, reversed, stored, loaded, to_host, from_host, to_disk, from_disk })
}

impl<'a> Run<'a> {
    /// Makes what the run is now durable; the writing goes on while the run does.
    pub(crate) fn commit(&mut self) -> Result<()> {
        let Some(frontier) = self.frontier.take() else { return Ok(()) };
        let written = self.write_to(frontier);
        frontier.last = Instant::now();
        self.frontier = Some(frontier);
        written
    }

    /// Makes the results durable, and waits until they are.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some(frontier) = self.frontier.take() else { return Ok(()) };
        let mut held = Vec::new();
        for array in results(&self.variant.program) {
            held.push((array, self.contents(array)?));
        }
        let state = frontier.dir.adjoints().begin_waiting()?;
        for (array, bytes) in held {
            state.put(&format!("array {}", array.index()), &bytes)?;
        }
        put_ran(state, &self.ran)?;
        frontier.dir.adjoints().finish(self.ran.reversed)?;
        Ok(())
    }

    fn write_to(&mut self, frontier: &mut Frontier) -> Result<()> {
        let to_reverse = frontier.to_reverse;
        let adjoints = frontier.dir.adjoints();
        // While the last one is still being written, the run goes on, unless every action is to be durable.
        let state = match frontier.every.is_zero() {
            true => adjoints.begin_waiting()?,
            false => match adjoints.begin()? {
                Some(state) => state,
                None => return Ok(()),
            },
        };
        let at: Vec<u64> = self.at.iter().map(|step| *step as u64).collect();
        state.put("at", &at)?;
        put_ran(state, &self.ran)?;
        state.put("values", &self.frame.scalars.values)?;
        state.put("locals", &self.frame.scalars.locals)?;
        if !self.variant.hosted.is_empty() {
            state.put("host", &self.log.to_bytes())?;
        }
        for array in self.kept_arrays() {
            let bytes = self.contents(array)?;
            state.put(&format!("array {}", array.index()), &bytes)?;
            let depth = self.frame.tapes[array.index()].depth;
            if depth > 0 {
                let mut buffer = self.spare.take(bytes.len(), self.device.meter())?;
                let shape = [depth, bytes.len()];
                state.put_with(&format!("tape {}", array.index()), Dtype::U8, &shape, |tape| {
                    for place in 0..depth {
                        self.frame.copy_tape_to(array, place, &mut buffer)?;
                        tape[place * bytes.len()..][..bytes.len()].copy_from_slice(buffer.bytes());
                    }
                    Ok::<(), Error>(())
                })??;
                self.spare.give([buffer]);
            }
        }
        for (id, driven) in &mut self.sweeps {
            if let Some(far) = &mut driven.far {
                state.put(&format!("on-disk {}", id.index()), &[far.on_disk as u64])?;
                for (index, step) in far.held() {
                    for (k, bytes) in far.contents(index)?.iter().enumerate() {
                        state.put(&format!("far {} {index} {step} {k}", id.index()), bytes)?;
                    }
                }
            }
            if let Some(rest) = driven.rest {
                state.put(&format!("rest {}", id.index()), &words(rest))?;
            }
            let text = driven.schedule.to_string();
            state.put(&format!("schedule {}", id.index()), text.as_bytes())?;
            for (slot, buffers) in &driven.slots {
                for (k, buffer) in buffers.iter().enumerate() {
                    let name = format!("slot {} {} {} {k}", id.index(), tier(slot.tier), slot.index);
                    state.put(&name, buffer.bytes())?;
                }
            }
        }
        // Branches that are not taken have nothing to reverse, so there may be fewer passes, never more.
        let reversed = self.ran.reversed;
        let all = to_reverse.unwrap_or(reversed).max(reversed);
        adjoints.commit(all - reversed, all);
        Ok(())
    }

    /// Arrays that hold something between two actions: everything but names for what others held.
    fn kept_arrays(&self) -> Vec<ArrayId> {
        let program = &self.variant.program;
        let kept = |a: &ArrayId| matches!(program.array(*a).role, Role::Temp(_) | Role::Param(Access::Write));
        program.array_ids().filter(kept).collect()
    }

    fn read(&mut self, state: &State) -> Result<()> {
        self.at = state.get_vec::<u64>("at")?.into_iter().map(|step| step as usize).collect();
        self.ran = read_ran(state)?;
        state.get("values", &mut self.frame.scalars.values)?;
        state.get("locals", &mut self.frame.scalars.locals)?;
        if !self.variant.hosted.is_empty() {
            let (arrays, source) = (&self.frame.arrays, &self.variant.source);
            let size = |array: ArrayId| {
                let decl = source.arrays.get(array.index())?;
                Some((arrays[array.index()].bytes, decl.ty.size()))
            };
            let log = Log::from_bytes(&state.get_vec::<u8>("host")?).filter(|log| log.fits(size));
            self.log =
                log.ok_or_else(|| self.variant.lost("in its directory: what the host did is damaged"))?;
        }
        for array in self.kept_arrays() {
            let bytes: Vec<u8> = state.get_vec(&format!("array {}", array.index()))?;
            self.set_contents(array, &bytes)?;
        }
        let mut driven: Vec<Driven<'a>> = Vec::new();
        let variant = self.variant;
        for sweep in outermost(&variant.script.steps) {
            let Ok(text) = state.get_vec::<u8>(&format!("schedule {}", sweep.id.index())) else { continue };
            let text = String::from_utf8_lossy(&text);
            let schedule: AnySchedule = text
                .parse()
                .map_err(|e: ebbtide_schedule::Error| variant.lost(&format!("in its directory: {e}")))?;
            let on_disk = state.get_vec::<u64>(&format!("on-disk {}", sweep.id.index())).unwrap_or_default();
            let on_disk = on_disk.first().map_or(0, |on_disk| *on_disk as usize);
            let rest = state.get_vec::<u64>(&format!("rest {}", sweep.id.index())).unwrap_or_default();
            let mut found = Driven::new(sweep, schedule, on_disk);
            found.rest = action(&rest);
            driven.push(found);
        }
        // A file has its arrays in an order of its own.
        let mut pieces: Vec<(&str, Vec<usize>, &[u8])> = Vec::new();
        for array in state.arrays() {
            let mut words = array.name.split(' ');
            let kind = words.next().unwrap_or_default();
            if kind == "tape" {
                let id = words.next().and_then(|word| word.parse().ok());
                self.push_tape(id.map(ArrayId::from_index), array.shape, array.bytes)?;
                continue;
            }
            pieces.push((kind, words.filter_map(|word| word.parse().ok()).collect(), array.bytes));
        }
        pieces.sort_unstable();
        let away = |piece: &&(&str, Vec<usize>, &[u8])| piece.0 == "far" && piece.1.len() == 4;
        let away: Vec<&(&str, Vec<usize>, &[u8])> = pieces.iter().filter(away).collect();
        for arrays in away.chunk_by(|a, b| a.1[..2] == b.1[..2]) {
            let [id, index, step] = [arrays[0].1[0], arrays[0].1[1], arrays[0].1[2]];
            let Some(driven) = driven.iter_mut().find(|d| d.sweep.id.index() == id) else { continue };
            if index < driven.on_disk && self.tiers.disk.is_none() {
                return Err(variant.lost("it kept states on disk: launch it with `.disk(..)`, as before"));
            }
            let contents: Vec<&[u8]> = arrays.iter().map(|piece| piece.2).collect();
            let spare = self.spare;
            let (far, _) = self.far(driven);
            far.restore(index, step as u64, &contents, spare)?;
        }
        for (kind, numbers, bytes) in pieces {
            let ("slot", [id, in_tier, index, _]) = (kind, numbers.as_slice()) else { continue };
            let buffer = self.filled(bytes)?;
            let tier = if *in_tier == tier(Tier::Memory) { Tier::Memory } else { Tier::Disk };
            let slot = Slot { tier, index: *index };
            if let Some(driven) = driven.iter_mut().find(|d| d.sweep.id.index() == *id) {
                driven.slots.entry(slot).or_default().push(buffer);
            }
        }
        self.sweeps = driven.into_iter().map(|d| (d.sweep.id, d)).collect();
        Ok(())
    }

    /// Puts on the tape of an array what was on it.
    fn push_tape(&mut self, array: Option<ArrayId>, shape: &[usize], bytes: &[u8]) -> Result<()> {
        let kept = array.and_then(|id| Some((id, self.frame.arrays.get(id.index())?.bytes)));
        let (Some((id, size)), &[depth, width]) = (kept, shape) else {
            return Err(self.variant.lost("in its directory: a tape that this version cannot read"));
        };
        if size != width {
            return Err(self.variant.lost("in its directory: a tape of an array of another size"));
        }
        self.frame.reserve_tape(id, depth, self.spare, self.device.meter())?;
        for place in 0..depth {
            let buffer = self.filled(&bytes[place * width..][..width])?;
            self.frame.push_from(id, &buffer)?;
            self.spare.give([buffer]);
        }
        Ok(())
    }

    fn filled(&mut self, bytes: &[u8]) -> Result<Buffer> {
        let mut buffer = self.spare.take(bytes.len(), self.device.meter())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }
}

/// The sweeps that are in no other one, those in branches too.
fn outermost(steps: &[Step]) -> Vec<&Sweep> {
    let (mut sweeps, mut work) = (Vec::new(), vec![steps]);
    while let Some(steps) = work.pop() {
        for step in steps {
            match step {
                Step::Forward(sweep) => sweeps.push(sweep),
                Step::If { then, otherwise, .. } => work.extend([&then[..], otherwise]),
                _ => {}
            }
        }
    }
    sweeps
}

/// What is left of an action, as numbers.
fn words(action: Action) -> [u64; 3] {
    match action {
        Action::Advance { from, to } => [0, from, to],
        Action::Record { from, to } => [1, from, to],
        Action::Reverse { from, to } => [2, from, to],
        // The others are done in one go.
        _ => [3, 0, 0],
    }
}

fn action(words: &[u64]) -> Option<Action> {
    match *words {
        [0, from, to] => Some(Action::Advance { from, to }),
        [1, from, to] => Some(Action::Record { from, to }),
        [2, from, to] => Some(Action::Reverse { from, to }),
        _ => None,
    }
}

fn tier(tier: Tier) -> usize {
    usize::from(tier == Tier::Disk)
}
