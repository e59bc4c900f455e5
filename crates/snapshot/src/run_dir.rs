use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adjoints::Adjoints;
use crate::disk::Disk;
use crate::file::{SnapshotReader, read_snapshot};
use crate::fs::{FileSystem, LockGuard};
use crate::journal::{Journal, Record};
use crate::manifest::{Identity, MANIFEST, Manifest, command_line};
use crate::recovery::Recovered;
use crate::store::Store;
use crate::survey::{Adjoint, JOURNAL, LOCK, Survey};
use crate::writer::{Durability, Job, Writer};
use crate::{Checkpoint, Error};

/// The directory of a run that is there, looked at and not yet touched.
pub struct FoundRun {
    fs: Arc<dyn FileSystem>,
    survey: Survey,
    recovered: Recovered,
    access: Access,
}

/// What this process may do with a run.
enum Access {
    Write(LockGuard),
    /// There is no lock yet: the directory is a copy, or was made by hand.
    Unlocked,
    /// The run is finished, and another process has it or nobody may write there.
    Read,
}

impl FoundRun {
    /// Looks at a run that another process has left, or that this one has. Reads every snapshot, changes nothing.
    ///
    /// A finished run whose gradient is sound can always be read: where nobody may write, and while another reads it.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, Error> {
        // A directory that is no run must not get a lock file from us.
        Manifest::read(&*fs, dir)?;
        let entries = fs.list(dir).map_err(Error::io("list", dir))?;
        let (access, busy) = match entries.iter().any(|entry| entry.name == LOCK) {
            false => (Access::Unlocked, None),
            true => match lock(&*fs, dir) {
                Ok(lock) => (Access::Write(lock), None),
                Err(error) => (Access::Read, Some(error)),
            },
        };
        let survey = Survey::read(&*fs, dir)?;
        // Whether it is finished is seen before all of a run that another process works on is read.
        if let Some(error) = busy {
            if !survey.finished {
                return Err(error);
            }
            let recovered = survey.examine(&fs);
            return if recovered.finished { Ok(Self { fs, survey, recovered, access }) } else { Err(error) };
        }
        let recovered = survey.examine(&fs);
        Ok(Self { fs, survey, recovered, access })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.survey.dir
    }

    /// What was written down when the run was created.
    pub fn manifest(&self) -> &Manifest {
        &self.survey.manifest
    }

    /// Refuses to continue this run for anything but what it was made for.
    pub fn check(&self, identity: &Identity) -> Result<(), Error> {
        self.survey.manifest.check(&self.survey.dir, identity)
    }

    /// Makes this process the owner of the run, if it was made for this. A refusal leaves everything as it was.
    pub fn take_up(self, identity: &Identity) -> Result<RunDir, Error> {
        self.check(identity)?;
        let Self { fs, mut survey, mut recovered, access } = self;
        let lock = match access {
            Access::Write(lock) => lock,
            Access::Unlocked => match lock(&*fs, &survey.dir) {
                Ok(lock) => {
                    // Another process may have been here since.
                    survey = Survey::read(&*fs, &survey.dir)?;
                    recovered = survey.examine(&fs);
                    lock
                }
                Err(_) if recovered.finished => return RunDir::read_only(fs, survey, recovered),
                Err(error) => return Err(error),
            },
            Access::Read => return RunDir::read_only(fs, survey, recovered),
        };
        let run = RunDir::own(fs, survey, lock, recovered)?;
        run.writer.submit(Job::Note(Record::Opened { command: command_line() }));
        Ok(run)
    }
}

/// The directory of a durable run, owned by this process.
///
/// It holds a manifest (what the run is), a journal (what it has done) and numbered snapshot files. Files are only
/// ever added under new numbers. A file that the journal speaks of is complete; one that it does not speak of is used
/// if it proves to be complete and of this run. None is removed but those that this process has superseded.
pub struct RunDir {
    dir: PathBuf,
    manifest: Manifest,
    store: Store,
    writer: Arc<Writer>,
    recovered: Option<Recovered>,
    adjoints: Adjoints,
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

    /// Takes up the run in a directory, if it was made for this: [`FoundRun::open`] and [`FoundRun::take_up`].
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, identity: &Identity) -> Result<Self, Error> {
        // Before the lock and the snapshots: a refusal costs nothing and changes nothing.
        Manifest::read(&*fs, dir)?.check(dir, identity)?;
        FoundRun::open(fs, dir)?.take_up(identity)
    }

    /// A finished run that is not ours.
    fn read_only(fs: Arc<dyn FileSystem>, survey: Survey, recovered: Recovered) -> Result<Self, Error> {
        let store = survey.store(fs);
        // Without a journal nothing that it is told gets anywhere.
        let writer = Arc::new(Writer::start(store.clone(), None, Durability::Durable)?);
        Ok(Self::with(survey, store, writer, recovered))
    }

    fn own(
        fs: Arc<dyn FileSystem>,
        survey: Survey,
        lock: LockGuard,
        recovered: Recovered,
    ) -> Result<Self, Error> {
        let (dir, store) = (&survey.dir, survey.store(Arc::clone(&fs)));
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
        let kept = recovered.adjoints.iter().map(|adjoint| adjoint.file).collect();
        let adjoints = Adjoints::new(store.clone(), Arc::clone(&writer), kept);
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

    /// What was found, once, with the disk whose slots hold the states that were found.
    pub fn take_recovered(&mut self) -> (Recovered, Disk) {
        let mut recovered = self.recovered.take().unwrap_or_default();
        let held = std::mem::take(&mut recovered.held);
        let disk = Disk::new(self.store.clone(), Arc::clone(&self.writer), Durability::Durable, held);
        (recovered, disk)
    }

    /// A disk with no states, beside others of the same run.
    pub fn empty_disk(&self) -> Disk {
        Disk::new(self.store.clone(), Arc::clone(&self.writer), Durability::Durable, BTreeMap::new())
    }

    /// Reads an adjoint that was found.
    pub fn read_adjoint(&self, adjoint: &Adjoint, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        checkpoint.clear();
        let path = self.store.path(adjoint.file);
        let label = self.store.open(adjoint.file)?.label().clone();
        let found = read_snapshot(&*self.store.fs, &path, checkpoint)?;
        if found == label { Ok(()) } else { Err(Error::damaged(&path, "it was replaced while it was read")) }
    }

    /// Opens an adjoint that was found, to be read piece by piece.
    pub fn open_adjoint(&self, adjoint: &Adjoint) -> Result<SnapshotReader, Error> {
        self.store.open(adjoint.file)
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
