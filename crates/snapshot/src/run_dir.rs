use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, Held};
use crate::file::Kind;
use crate::fs::{FileSystem, LockGuard};
use crate::journal::{FileNumber, Journal, Record};
use crate::manifest::{MANIFEST, Manifest, command_line};
use crate::store::{Store, number_in};
use crate::survey::{Adjoint, JOURNAL, LOCK, Survey};
use crate::writer::{Durability, Job, Writer};
use crate::{Error, State};

/// The directory of a durable run, owned by this process.
///
/// It holds a manifest (what the run is), a journal (what it has done) and numbered snapshot files. Files are only
/// ever added under new numbers; the journal says which of them count, and a file that it speaks of is complete.
pub struct RunDir {
    dir: PathBuf,
    manifest: Manifest,
    store: Store,
    writer: Arc<Writer>,
    recovered: Option<Recovered>,
    adjoints: Adjoints,
}

/// What was found in the directory of a run and can be gone on with.
#[derive(Default)]
pub struct Recovered {
    /// The states that are sound, by step: the slot in `disk` that holds each, and its step.
    pub states: Vec<(usize, u64)>,
    /// The latest adjoint that is sound, if the turn has come.
    pub adjoint: Option<(Adjoint, State)>,
    /// Whether that adjoint is the complete gradient.
    pub finished: bool,
    /// One sentence for each thing that was found damaged or missing and is done without.
    pub damage: Vec<String>,
    held: Vec<Option<Held>>,
}

impl RunDir {
    /// Makes the directory of a new run. It may exist, but hold no run.
    pub fn create(fs: Arc<dyn FileSystem>, dir: &Path, manifest: Manifest) -> Result<Self, Error> {
        fs.create_dir(dir).map_err(Error::io("create", dir))?;
        // Once before anything is touched, and once more when nobody else can.
        check_empty(&*fs, dir)?;
        let lock = lock(&*fs, dir)?;
        check_empty(&*fs, dir)?;
        manifest.write(&*fs, dir)?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs.sync_dir(parent).map_err(Error::io("sync", parent))?;
        }
        let survey = Survey::read(&*fs, dir)?;
        Self::own(fs, survey, lock, Recovered::default())
    }

    /// Takes up a run that another process has left, or that this one has.
    ///
    /// A finished run whose gradient is sound can always be read: where nobody may write, and while another reads it.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, Error> {
        // A directory that is no run must not get a lock file from us.
        Manifest::read(&*fs, dir)?;
        let lock = match lock(&*fs, dir) {
            Ok(lock) => lock,
            Err(error) => return Self::read_finished(fs, dir)?.ok_or(error),
        };
        let survey = Survey::read(&*fs, dir)?;
        let recovered = recover(&fs, &survey);
        Self::own(fs, survey, lock, recovered)
    }

    /// The run without its lock, if there is nothing left to do in it.
    fn read_finished(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Option<Self>, Error> {
        let survey = Survey::read(&*fs, dir)?;
        if !survey.finished {
            return Ok(None);
        }
        let recovered = recover(&fs, &survey);
        if recovered.adjoint.is_none() {
            return Ok(None);
        }
        let store = survey.store(fs);
        // Without a journal nothing that it is told gets anywhere.
        let writer = Arc::new(Writer::start(store.clone(), None, Durability::Durable)?);
        Ok(Some(Self::with(survey, store, writer, recovered)))
    }

    fn own(
        fs: Arc<dyn FileSystem>,
        survey: Survey,
        lock: LockGuard,
        recovered: Recovered,
    ) -> Result<Self, Error> {
        let (dir, store) = (&survey.dir, survey.store(Arc::clone(&fs)));
        // The store has counted them, so their numbers are not used again even if one cannot be removed.
        for name in survey.leftovers.iter().filter(|name| number_in(name).is_some()) {
            let _ = fs.remove(&dir.join(name));
        }
        let journal_path = dir.join(JOURNAL);
        let mut journal = Journal::open(&fs, &journal_path, &survey.history)?;
        if survey.history.records.is_empty() {
            journal.append(&[Record::Begun])?;
        }
        let writer = Arc::new(Writer::start(store.clone(), Some((journal, lock)), Durability::Durable)?);
        // The journal may just have been made: its name must be as durable as its lines.
        fs.sync_dir(dir).map_err(Error::io("sync", dir))?;
        Ok(Self::with(survey, store, writer, recovered))
    }

    fn with(survey: Survey, store: Store, writer: Arc<Writer>, recovered: Recovered) -> Self {
        let adjoints = Adjoints {
            store: store.clone(),
            writer: Arc::clone(&writer),
            buffer: Arc::default(),
            kept: survey.adjoints.iter().map(|adjoint| adjoint.file).collect(),
        };
        let Survey { dir, manifest, .. } = survey;
        Self { dir, manifest, store, writer, recovered: Some(recovered), adjoints }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was written down when the run was created.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes down that this process goes on with the run, once it is sure that it may.
    pub fn note_opened(&self) {
        self.writer.submit(Job::Note(Record::Opened { command: command_line() }));
    }

    /// What was found, once, with the disk whose slots hold the states that were found.
    pub fn take_recovered(&mut self) -> (Recovered, Disk) {
        let mut recovered = self.recovered.take().unwrap_or_default();
        let held = std::mem::take(&mut recovered.held);
        let disk = Disk::new(self.store.clone(), Arc::clone(&self.writer), Durability::Durable, held);
        (recovered, disk)
    }

    /// A disk with no states, beside others of the same run.
    pub fn empty_disk(&self) -> Disk {
        Disk::new(self.store.clone(), Arc::clone(&self.writer), Durability::Durable, Vec::new())
    }

    /// Where adjoints are kept.
    pub fn adjoints(&mut self) -> &mut Adjoints {
        &mut self.adjoints
    }

    /// Returns when everything that was kept so far is durable.
    pub fn flush(&self) -> Result<(), Error> {
        self.writer.flush()
    }
}

pub(crate) fn lock(fs: &dyn FileSystem, dir: &Path) -> Result<LockGuard, Error> {
    let path = dir.join(LOCK);
    let lock = fs.lock(&path).map_err(Error::io("lock", &path))?;
    lock.ok_or_else(|| Error::Busy { path: dir.to_owned() })
}

fn check_empty(fs: &dyn FileSystem, dir: &Path) -> Result<(), Error> {
    let entries = fs.list(dir).map_err(Error::io("list", dir))?;
    let mut names = entries.iter().map(|entry| entry.name.to_string_lossy().into_owned());
    let Some(name) = names.find(|name| !is_debris(name)) else { return Ok(()) };
    match Manifest::read(fs, dir) {
        Err(error @ Error::Damaged { .. }) => Err(error),
        _ => Err(Error::NotEmpty { path: dir.to_owned(), name }),
    }
}

/// What the interrupted creation of a run can have left.
fn is_debris(name: &str) -> bool {
    name == LOCK || name.strip_suffix(".tmp") == Some(MANIFEST)
}

fn recover(fs: &Arc<dyn FileSystem>, survey: &Survey) -> Recovered {
    let mut recovered = Recovered {
        finished: survey.finished,
        damage: survey.history.damage.clone(),
        ..Recovered::default()
    };
    let (store, mut state) = (survey.store(Arc::clone(fs)), State::new());
    for &(file, step) in &survey.states {
        match store.read(file, Kind::State, step, &mut state) {
            Ok(()) => {
                recovered.states.push((recovered.held.len(), step));
                recovered.held.push(Some(Held { file, step, bytes: state.bytes() }));
            }
            Err(error) => recovered.damage.push(error.to_string()),
        }
    }
    for &adjoint in survey.adjoints.iter().rev() {
        match store.read(adjoint.file, Kind::Adjoint, adjoint.step, &mut state) {
            Ok(()) => {
                recovered.adjoint = Some((adjoint, state));
                break;
            }
            Err(error) => recovered.damage.push(error.to_string()),
        }
    }
    recovered
}

/// How many adjoints stay on disk: the latest, and one to fall back on.
const GENERATIONS: usize = 2;

/// The adjoints of a run on disk: the frontier of its reverse sweep.
pub struct Adjoints {
    store: Store,
    writer: Arc<Writer>,
    buffer: Arc<State>,
    kept: VecDeque<FileNumber>,
}

impl Adjoints {
    /// A state to save the adjoint into; `None` while the one before is still being written.
    pub fn begin(&mut self) -> Result<Option<&mut State>, Error> {
        self.writer.check()?;
        let Some(state) = Arc::get_mut(&mut self.buffer) else { return Ok(None) };
        state.clear();
        Ok(Some(state))
    }

    /// As [`begin`](Self::begin), but waits.
    pub fn begin_waiting(&mut self) -> Result<&mut State, Error> {
        loop {
            let seen = self.writer.progress();
            self.writer.check()?;
            if Arc::get_mut(&mut self.buffer).is_some() {
                break;
            }
            self.writer.wait_beyond(seen)?;
        }
        self.begin()?.ok_or(Error::WorkerDied { doing: "writes snapshots" })
    }

    /// Keeps what was saved: of `steps` steps everything down to `step` is reversed.
    pub fn commit(&mut self, step: u64, steps: u64) {
        let supersedes = if self.kept.len() < GENERATIONS { None } else { self.kept.pop_front() };
        let file = self.keep(step, supersedes, |file| Record::Reversed { step, steps, file, supersedes });
        self.kept.push_back(file);
    }

    /// Keeps what was saved as the complete gradient and returns when it is durable.
    pub fn finish(&mut self, steps: u64) -> Result<(), Error> {
        let file = self.keep(0, None, |file| Record::Finished { steps, file });
        self.writer.flush()?;
        for old in std::mem::take(&mut self.kept) {
            self.writer.submit(Job::Remove { file: old, record: None });
        }
        self.kept.push_back(file);
        self.writer.flush()
    }

    fn keep(
        &self,
        step: u64,
        supersedes: Option<FileNumber>,
        record: impl FnOnce(FileNumber) -> Record,
    ) -> FileNumber {
        let file = self.store.next_number();
        self.writer.submit(Job::Keep {
            file,
            label: self.store.label(Kind::Adjoint, step),
            state: Arc::clone(&self.buffer),
            record: Some(record(file)),
            supersedes,
        });
        file
    }
}
