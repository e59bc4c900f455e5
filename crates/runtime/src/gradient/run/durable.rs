//! Gradient runs that survive their process.
//!
//! Between two actions of an outermost sweep a run is: the arrays, tapes and slots that it holds, its scalars, and how
//! far its steps and its schedules have come. All that is written, now and then, as one snapshot of the run's directory
//! (`commit`), from where it lies: no copy of it is made in memory. A process that takes the run up reads the last one that
//! is whole (`restore`), after every piece of it has been held against the program.

mod commit;
mod layout;
mod parts;
mod position;
mod restore;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_ir::{self as ir, Access, ArrayId, Param, Program, Role};
use ebbtide_snapshot::fs::FileSystem;
use ebbtide_snapshot::{Budget, Error as SnapshotError, Identity, Manifest, RunDir, Superseding};

use crate::array::arguments::Arg;
use crate::error::{Error, Result};
use crate::gradient::compile::Variant;
use crate::gradient::plan::Plan;
use crate::gradient::run::Run;

pub(crate) use parts::{Together, part_dir};

/// Where a run is made durable.
pub(crate) struct Frontier {
    dir: RunDir,
    every: Duration,
    last: Instant,
    /// How many iterations there are to reverse, where that is known.
    to_reverse: Option<u64>,
    /// What makes it a frontier of all parts of a grid, if it is one.
    together: Option<Together>,
}

/// How far a run had come.
pub(crate) enum Reached {
    Beginning,
    /// To a state in a file.
    Middle {
        /// What is wrong with that file if the rest of the run takes more from its tapes than they hold.
        short: SnapshotError,
    },
    End,
}

/// An error of the rest of a run that began with a state from a file. That there is something else than the rest needs on
/// its tapes cannot be known before it runs.
pub(crate) fn of_restored(error: Error, short: SnapshotError) -> Error {
    match error {
        Error::Program(ir::Error::Run { fault: ir::Fault::Tape, .. }) => short.into(),
        other => other,
    }
}

impl Frontier {
    /// Which of these gradient programs the run in a directory follows, if there is a run.
    pub fn follows(fs: &dyn FileSystem, dir: &Path, variants: &[Variant]) -> Option<usize> {
        let manifest = Manifest::read(fs, dir).ok()?;
        variants.iter().position(|variant| hash(variant) == manifest.identity.hash())
    }

    /// The directory of a run: made, or found as another process left it. One of another question is refused untouched.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        every: Duration,
        variant: &Variant,
        plan: &Plan,
        args: &[Arg<'_>],
    ) -> Result<Frontier> {
        let together = Together::open(&*fs, dir, variant)?;
        let mut identity = identity(variant, args);
        let mut dir = dir.to_path_buf();
        if let Some(together) = &together {
            identity = identity.input("part", together.identity());
            dir = together.dir(&dir);
        }
        let dir = &dir;
        let dir = match RunDir::open(fs.clone(), dir, &identity) {
            Err(SnapshotError::NotARun { .. }) => {
                let budget = Budget { slots: 0, block: 1, disk_slots: 0, disk_cost: 0 };
                RunDir::create(fs, dir, Manifest::new(identity, "of a compiled program", None, budget))?
            }
            found => found?,
        };
        let mut frontier =
            Frontier { dir, every, last: Instant::now(), to_reverse: plan.to_reverse(), together };
        if frontier.together.is_some() {
            frontier.dir.adjoints().supersede(Superseding::WhenReleased);
        }
        Ok(frontier)
    }

    /// How many iterations there are to reverse, of which this many are. Branches that are not taken have nothing to reverse, so
    /// there may be fewer, never more.
    fn all(&self, reversed: u64) -> u64 {
        self.to_reverse.unwrap_or(reversed).max(reversed)
    }

    /// Is every action made durable?
    pub fn is_of_every_action(&self) -> bool {
        self.every.is_zero()
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
        for sentence in &recovered.adopted {
            tracing::info!("durable gradient: continues from {sentence}");
        }
        let (found, finished) = match &mut self.together {
            Some(together) => together.choose(&mut self.dir, &recovered)?,
            None => (recovered.adjoint, recovered.finished),
        };
        let Some(adjoint) = found else { return Ok(Reached::Beginning) };
        let mut reader = self.dir.open_adjoint(&adjoint)?;
        if self.together.is_some() {
            parts::read_number(&mut reader)?;
        }
        if finished {
            run.read_results(&mut reader)?;
            return Ok(Reached::End);
        }
        run.read_state(&mut reader)?;
        let (all, reversed) = (self.all(run.ran.reversed), run.ran.reversed);
        if (adjoint.step, adjoint.steps) != (all - reversed, all) {
            return Err(reader.damaged("it is not of the step that it says").into());
        }
        match &self.together {
            Some(together) => together.check_position(run),
            None => Ok(()),
        }?;
        let short = reader.damaged(
            "its tapes do not hold what the rest of the run takes from them; move it away to continue from an earlier \
             state, or begin again in an empty directory",
        );
        Ok(Reached::Middle { short })
    }
}

fn hash(variant: &Variant) -> String {
    format!("{:?}", variant.program.hash())
}

/// What is computed: the gradient program, the laws, and everything that its result depends on.
fn identity(variant: &Variant, args: &[Arg<'_>]) -> Identity {
    let program = &variant.program;
    let mut identity = Identity::new(variant.source.name.clone(), hash(variant)).laws(ir::LAWS);
    // Flags of the C compiler can change a rounding.
    let flags = std::env::var("EBBTIDE_CFLAGS").unwrap_or_default();
    if !flags.trim().is_empty() {
        identity = identity.input("EBBTIDE_CFLAGS", flags.trim());
    }
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
            identity = identity.input_bytes(name, array.bytes());
        }
    }
    identity
}

/// The arrays that receive results.
fn results(program: &Program) -> Vec<ArrayId> {
    program.array_ids().filter(|a| program.array(*a).role == Role::Param(Access::Write)).collect()
}

/// Arrays that hold something between two actions: everything but names for what others held.
fn kept_arrays(program: &Program) -> Vec<ArrayId> {
    let kept = |a: &ArrayId| matches!(program.array(*a).role, Role::Temp(_) | Role::Param(Access::Write));
    program.array_ids().filter(kept).collect()
}
