//! Runs that survive their process.
//!
//! This lives here and not in `snapshot` because going on after a crash means planning anew: it needs the schedules
//! and the driver. `snapshot` owns the directory, the files and the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_schedule::{AnySchedule, Options, Progress as Reach, Schedule, Slot, Tier, replan};
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_snapshot::{
    Budget, Checkpoint, Disk, Error as SnapshotError, FoundRun, Identity, Manifest, Memory, Place, RunDir,
    State,
};

use crate::pace::Pace;
use crate::patchwork::{Patchwork, Plan};
use crate::sweep::Observer;
use crate::{Cancel, Counters, Error, Progress, Start, Stepper, Sweep};

/// A stepper whose run can be gone on with by another process.
///
/// Besides the promises of a [`Stepper`], its steps must do the same in every process that takes the run up.
pub trait Durable: Stepper<State = State> {
    /// What is computed: the program and every input that the result depends on.
    ///
    /// The arrays that [`save`](Stepper::save) gives for the first state are added by the run itself.
    fn identity(&self) -> Identity;

    /// Saves everything that the reversal has accumulated, and what the [`turn`](Stepper::turn) has found.
    fn save_adjoint(&self, adjoint: &mut State) -> Result<(), Self::Error>;

    /// Replaces all that by what was saved. No tape is kept at this moment.
    fn restore_adjoint(&mut self, adjoint: &State) -> Result<(), Self::Error>;
}

/// How often the frontier is made durable if nothing else is asked for.
const ONCE_A_MINUTE: Duration = Duration::from_secs(60);

/// A gradient that is computed in a directory and survives its process.
///
/// ```no_run
/// # use ebbtide_sweep::{Durable, Run};
/// # fn gradient<T: Durable<Error = ebbtide_snapshot::Error>>(mut stepper: T) -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::path::Path::new("run");
/// use ebbtide_schedule::Revolve;
///
/// let mut run = match dir.exists() {
///     false => Run::create(dir, &stepper, Revolve::new(100_000, 50)?)?,
///     true => Run::open(dir)?,
/// };
/// run.resume(&mut stepper)?; // the gradient is in the stepper, whether this process did it all or the last bit
/// # Ok(())
/// # }
/// ```
pub struct Run {
    manifest: Manifest,
    path: PathBuf,
    dir: Held,
    every: Duration,
    cancel: Cancel,
    observer: Option<Observer>,
    damage: Vec<String>,
    taken_up: bool,
    work: Option<Work>,
    finished: bool,
}

/// What this process has of a directory.
enum Held {
    /// A run that was looked at and not touched.
    Found(Box<FoundRun>),
    Owned(Box<RunDir>),
    /// A run that could not be taken up.
    Lost,
}

/// A run that has begun in this process.
struct Work {
    sweep: Sweep<Plan, State>,
    /// Holds the working state of the forward sweep, from time to time.
    frontier: Disk,
    last_frontier: Instant,
}

impl Run {
    /// Creates a run in a directory that is empty or does not exist.
    ///
    /// `stepper` is at its beginning. What the schedule asks for on disk goes into the directory; memory slots are lost
    /// with the process, and the rest is then planned anew over what is on disk.
    pub fn create<T: Durable>(
        dir: impl AsRef<Path>,
        stepper: &T,
        schedule: impl Into<AnySchedule>,
    ) -> Result<Self, Error<T::Error>> {
        let schedule = schedule.into();
        let budget = budget(&schedule);
        Self::create_on(Arc::new(Disks), dir, stepper, schedule, budget)
    }

    /// As [`create`](Self::create), on a file system of your own, and with what may be used in planning anew.
    pub fn create_on<T: Durable>(
        fs: Arc<dyn FileSystem>,
        dir: impl AsRef<Path>,
        stepper: &T,
        schedule: impl Into<AnySchedule>,
        budget: Budget,
    ) -> Result<Self, Error<T::Error>> {
        let identity = full_identity(stepper)?;
        let schedule = schedule.into();
        let manifest = Manifest::new(identity, schedule.to_string(), schedule.steps(), budget);
        let dir = RunDir::create(fs, dir.as_ref(), manifest)?;
        Ok(Self::new(dir.manifest().clone(), dir.dir().to_owned(), Held::Owned(Box::new(dir))))
    }

    /// Takes up a run that was interrupted, or the result of one that is complete.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Self::open_on(Arc::new(Disks), dir)
    }

    /// As [`open`](Self::open), on a file system of your own.
    pub fn open_on(fs: Arc<dyn FileSystem>, dir: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let found = FoundRun::open(fs, dir.as_ref())?;
        Ok(Self::new(found.manifest().clone(), found.dir().to_owned(), Held::Found(Box::new(found))))
    }

    fn new(manifest: Manifest, path: PathBuf, dir: Held) -> Self {
        Self {
            manifest,
            path,
            dir,
            every: ONCE_A_MINUTE,
            cancel: Cancel::new(),
            observer: None,
            damage: Vec::new(),
            taken_up: false,
            work: None,
            finished: false,
        }
    }

    /// Makes the frontier durable this often: the working state on the way forward, the adjoint on the way back.
    /// It bounds what an interruption costs. Once a minute if not said.
    #[must_use]
    pub fn frontier_every(mut self, interval: Duration) -> Self {
        self.every = interval;
        self
    }

    /// Stops between two actions when `cancel` says so, and makes the frontier durable first.
    #[must_use]
    pub fn cancel_with(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Calls `observer` after each action.
    #[must_use]
    pub fn observe(mut self, observer: impl FnMut(&Progress<'_>) + Send + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// What the run was made for.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What was found damaged or missing when the run was taken up, and is done without. Known once
    /// [`resume`](Self::resume) has begun.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Runs to the end, from wherever the run stands.
    ///
    /// `stepper` is at its beginning, or is the one that an earlier call in this process failed with. Afterwards it holds
    /// the gradient, with the same bits as if nothing had ever happened.
    pub fn resume<T: Durable>(&mut self, stepper: &mut T) -> Result<Counters, Error<T::Error>> {
        let mut work = match self.work.take() {
            Some(work) => work,
            None if self.finished => return Ok(Counters::default()),
            None => match self.begin(stepper)? {
                Some(work) => work,
                None => return Ok(Counters::default()),
            },
        };
        let result = self.carry_on(&mut work, stepper);
        if result.is_err() {
            // What there is stays, so that the caller may try again.
            self.work = Some(work);
        }
        result
    }

    fn owned(&mut self) -> Result<&mut RunDir, SnapshotError> {
        match &mut self.dir {
            Held::Owned(dir) => Ok(dir),
            _ => Err(SnapshotError::Busy { path: self.path.clone() }),
        }
    }

    /// Looks at what is there and plans the rest; `None` if there is none.
    fn begin<T: Durable>(&mut self, stepper: &mut T) -> Result<Option<Work>, Error<T::Error>> {
        let identity = full_identity(stepper)?;
        self.manifest.check(&self.path, &identity)?;
        let Manifest { budget, steps, .. } = self.manifest;
        // From here on the stepper changes: whatever stops us, this stepper is not at its beginning any more.
        if std::mem::replace(&mut self.taken_up, true) {
            return Err(Error::TakenUp);
        }
        self.dir = match std::mem::replace(&mut self.dir, Held::Lost) {
            Held::Found(found) => Held::Owned(Box::new(found.take_up(&identity)?)),
            other => other,
        };
        let dir = self.owned()?;
        let (recovered, mut disk) = dir.take_recovered();
        let mut frontier = dir.empty_disk();
        let mut adjoint = Checkpoint::default();
        if let Some(found) = &recovered.adjoint {
            dir.read_adjoint(found, &mut adjoint)?;
        }
        self.damage = recovered.damage;
        let mut memory = Memory::new();

        let reached = match &recovered.adjoint {
            Some(found) => {
                stepper.restore_adjoint(&adjoint.state).map_err(Error::Frontier)?;
                if recovered.finished {
                    self.finished = true;
                    return Ok(None);
                }
                Reach::Reversed(found.step)
            }
            None => Reach::Forward,
        };
        let fresh = recovered.states.is_empty() && recovered.adjoint.is_none();
        let (schedule, start) = if fresh {
            // A large plan takes time to read back, so it is read here alone.
            (Plan::Whole(self.manifest.schedule.parse()?), Start { live: Some(0), reversed: None })
        } else {
            // The stepper is at its beginning: that state is always there.
            let first = match disk.held().into_iter().find(|held| held.1 == 0) {
                Some((index, _)) => Slot { tier: Tier::Disk, index },
                None if budget.disk_slots > 0 => {
                    let index = disk.held().last().map_or(0, |held| held.0 + 1);
                    save_first(&mut disk, index, stepper)?;
                    Slot { tier: Tier::Disk, index }
                }
                None => {
                    save_first(&mut memory, 0, stepper)?;
                    Slot { tier: Tier::Memory, index: 0 }
                }
            };
            let told = recovered.adjoint.as_ref().map(|found| found.steps);
            if let (Some(told), Some(steps)) = (told, steps)
                && told != steps
            {
                let what = format!("the journal speaks of {told} steps, the manifest of {steps}");
                return Err(SnapshotError::Damaged { path: self.path.clone(), what }.into());
            }
            let steps = match told.or(steps) {
                Some(steps) => steps,
                None => self.find_end(&mut disk, &mut frontier, stepper)?,
            };
            let survivors = survivors(&mut disk, first, steps)?;
            // A manifest may say anything; more slots than there are steps are of no use.
            let most = usize::try_from(steps).unwrap_or(usize::MAX).max(1);
            let budget =
                Budget { slots: budget.slots.min(most), disk_slots: budget.disk_slots.min(most), ..budget };
            let plan = if budget.disk_slots > 0 {
                Plan::WithDisk(Patchwork::new(steps, &survivors, reached, budget)?)
            } else {
                let options = Options::new().block(budget.block.max(1));
                Plan::InMemory(replan(steps, &survivors, reached, budget.slots.max(1), options)?)
            };
            let reversed = match reached {
                Reach::Reversed(step) => Some(step),
                Reach::Forward => None,
            };
            (plan, Start { live: None, reversed })
        };
        let mut sweep = Sweep::new(schedule)
            .with_place(Tier::Memory, memory)
            .with_place(Tier::Disk, disk)
            .starting_at(start)
            .cancel_with(self.cancel.clone());
        if let Some(observer) = self.observer.take() {
            sweep = sweep.observe(observer);
        }
        Ok(Some(Work { sweep, frontier, last_frontier: Instant::now() }))
    }

    /// Goes forward from the last state on disk until the loop ends by itself, and returns where.
    fn find_end<T: Durable>(
        &mut self,
        disk: &mut Disk,
        frontier: &mut Disk,
        stepper: &mut T,
    ) -> Result<u64, Error<T::Error>> {
        let mut at = 0;
        if let Some((slot, step)) = disk.held().into_iter().max_by_key(|held| held.1) {
            stepper.restore(disk.load(slot)?).map_err(Error::Frontier)?;
            at = step;
        }
        let (mut pace, mut last) = (Pace::new(), Instant::now());
        loop {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled { step: at });
            }
            let to = pace.portion(at, u64::MAX);
            let reached = stepper.advance_online(at..to).map_err(Error::Frontier)?;
            pace.ran();
            at = reached;
            if reached < to {
                return Ok(reached);
            }
            if last.elapsed() >= self.every {
                last = Instant::now();
                stepper.save(frontier.begin(0)?).map_err(Error::Frontier)?;
                frontier.commit(0, at)?;
            }
        }
    }

    fn carry_on<T: Durable>(
        &mut self,
        work: &mut Work,
        stepper: &mut T,
    ) -> Result<Counters, Error<T::Error>> {
        loop {
            let before = work.sweep.reversed();
            match work.sweep.step(stepper) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Error::Cancelled { step }) => {
                    // Once the writer is idle it takes the frontier for sure.
                    self.owned()?.flush()?;
                    self.keep_frontier(work, stepper)?;
                    self.owned()?.flush()?;
                    return Err(Error::Cancelled { step });
                }
                Err(error) => return Err(error),
            }
            let turned = before.is_none() && work.sweep.reversed().is_some();
            // With the adjoint at the turn on disk, the end of the loop need not be reached again.
            if turned || work.last_frontier.elapsed() >= self.every {
                self.keep_frontier(work, stepper)?;
            }
        }
        work.frontier.discard(0)?;
        let steps = work.sweep.steps().unwrap_or(0);
        stepper.save_adjoint(self.owned()?.adjoints().begin_waiting()?).map_err(Error::Frontier)?;
        self.owned()?.adjoints().finish(steps)?;
        self.finished = true;
        Ok(*work.sweep.counters())
    }

    /// Hands the frontier to the writer; if that is still busy with the last one, the next time will do.
    fn keep_frontier<T: Durable>(&mut self, work: &mut Work, stepper: &mut T) -> Result<(), Error<T::Error>> {
        work.last_frontier = Instant::now();
        let reversed = work.sweep.reversed();
        if let (Some(step), Some(steps)) = (reversed, work.sweep.steps())
            && let Some(state) = self.owned()?.adjoints().begin()?
        {
            stepper.save_adjoint(state).map_err(Error::Frontier)?;
            self.owned()?.adjoints().commit(step, steps);
        }
        // On the way back too the working state is worth keeping: without it, a process that lives shorter than the
        // way from the last state on disk to the frontier would get nowhere.
        let of_use = |step: u64| reversed.is_none_or(|reversed| step < reversed);
        let kept = work.frontier.step(0).filter(|&step| of_use(step));
        match work.sweep.live() {
            Some(step) if of_use(step) && kept.is_none_or(|kept| kept < step) => {
                stepper.save(work.frontier.begin(0)?).map_err(Error::Frontier)?;
                work.frontier.commit(0, step)?;
            }
            _ if kept.is_none() => work.frontier.discard(0)?,
            _ => {}
        }
        Ok(())
    }
}

/// The identity of a stepper at its beginning, with the arrays of its first state.
fn full_identity<T: Durable>(stepper: &T) -> Result<Identity, Error<T::Error>> {
    let mut state = State::new();
    stepper.save(&mut state).map_err(Error::Frontier)?;
    Ok(stepper.identity().initial_state(&state))
}

fn save_first<T: Durable>(
    place: &mut dyn Place<State>,
    slot: usize,
    stepper: &T,
) -> Result<(), Error<T::Error>> {
    stepper.save(place.begin(slot)?).map_err(Error::Frontier)?;
    Ok(place.commit(slot, 0)?)
}

/// The states to plan with: the first one and, from the disk, one for each step up to the end.
fn survivors(disk: &mut Disk, first: Slot, steps: u64) -> Result<Vec<(u64, Slot)>, SnapshotError> {
    let mut kept = vec![(0, first)];
    let mut held = disk.held();
    held.sort_by_key(|&(_, step)| step);
    for (index, step) in held {
        let slot = Slot { tier: Tier::Disk, index };
        if slot == first {
            continue;
        }
        if step > steps || kept.last().is_some_and(|&(last, _)| last == step) {
            disk.discard(index)?;
        } else {
            kept.push((step, slot));
        }
    }
    Ok(kept)
}

/// What a schedule takes, to be used again in planning anew.
fn budget(schedule: &AnySchedule) -> Budget {
    let count = |slots: u64| usize::try_from(slots).unwrap_or(usize::MAX);
    let totals = schedule.totals().unwrap_or_default();
    let (slots, block) = match schedule {
        AnySchedule::Online(online) => (online.slots(), online.block()),
        // Its slots hold states or tapes, and one block is recorded beside them: with states alone in the slots, that
        // block is all the tape there may be.
        AnySchedule::Mixed(mixed) => (mixed.slots(), mixed.block()),
        _ => (count(totals.memory.peak_slots), totals.peak_tape),
    };
    Budget {
        slots: slots.max(1),
        block: block.max(1),
        disk_slots: count(totals.disk.peak_slots),
        disk_cost: DISK_COST_IF_NOT_SAID,
    }
}

/// The cost of a state on disk in steps, which a schedule does not tell. Off by a factor of a few it places states a
/// little too close or too far apart.
const DISK_COST_IF_NOT_SAID: u32 = 4;
