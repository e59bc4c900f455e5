//! What there is in the directory of a run, without touching it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::file::SnapshotReader;
use crate::fs::{EntryKind, FileSystem};
use crate::journal::{FileNumber, History, Record, read_journal};
use crate::manifest::{MANIFEST, Manifest};
use crate::recovery::{self, Recovered};
use crate::store::{Owner, Store, number_in};
use crate::{Error, Kind};

pub(crate) const JOURNAL: &str = "journal.txt";
pub(crate) const LOCK: &str = "lock";

/// The directory of a run as its manifest and its journal describe it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// Where it is.
    pub dir: PathBuf,
    /// What was written down when it was created.
    pub manifest: Manifest,
    /// What it has done since.
    pub history: History,
    /// The states that should be there: file and step, by step.
    pub states: Vec<(FileNumber, u64)>,
    /// The adjoints that should be there, the latest one last.
    pub adjoints: Vec<Adjoint>,
    /// Whether the gradient is complete.
    pub finished: bool,
    /// The bytes of everything in the directory.
    pub bytes: u64,
    /// Names that nothing speaks of: what an interruption left behind, or what does not belong here.
    pub leftovers: Vec<String>,
    /// The snapshot files that are there, whether the journal names them or not.
    pub(crate) files: BTreeSet<FileNumber>,
    /// The files that the journal says are not needed any more.
    obsolete: BTreeSet<FileNumber>,
}

/// An adjoint on disk: of `steps` steps everything down to `step` is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjoint {
    /// The file that holds it.
    pub file: FileNumber,
    /// The step.
    pub step: u64,
    /// The number of steps of the run.
    pub steps: u64,
}

impl Survey {
    /// Reads manifest, journal and directory. Reads no snapshot: see [`examine`](Self::examine).
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self, Error> {
        let manifest = Manifest::read(fs, dir)?;
        // Before the journal: a run that is being worked on has said that it began before it kept anything.
        let entries = fs.list(dir).map_err(Error::io("list", dir))?;
        let journal = dir.join(JOURNAL);
        let history = read_journal(fs, &journal)?;
        let (states, adjoints, finished) = replay(&history);
        let obsolete = obsolete(&history);
        let mut survey = Self {
            dir: dir.to_owned(),
            manifest,
            history,
            states,
            adjoints,
            finished,
            bytes: 0,
            leftovers: Vec::new(),
            files: BTreeSet::new(),
            obsolete,
        };
        for entry in entries {
            survey.bytes += entry.bytes;
            let name = entry.name.to_string_lossy().into_owned();
            let snapshot =
                number_in(&name).filter(|_| entry.kind == EntryKind::File && !name.ends_with(".tmp"));
            survey.files.extend(snapshot);
            let ours = [MANIFEST, JOURNAL, LOCK].contains(&name.as_str())
                || snapshot.is_some_and(|file| survey.names(file));
            if !ours {
                survey.leftovers.push(name);
            }
        }
        survey.leftovers.sort();
        Ok(survey)
    }

    /// Reads every snapshot that is there, and says what a process that takes the run up would find.
    pub fn examine(&self, fs: &Arc<dyn FileSystem>) -> Recovered {
        recovery::examine(fs, self)
    }

    /// Reads every snapshot that is there; one sentence for each thing that is wrong.
    pub fn verify(&self, fs: &Arc<dyn FileSystem>) -> Vec<String> {
        self.examine(fs).damage
    }

    /// Opens an adjoint that was found, to be read piece by piece.
    pub fn open(&self, fs: &Arc<dyn FileSystem>, adjoint: &Adjoint) -> Result<SnapshotReader, Error> {
        self.store(Arc::clone(fs)).open(adjoint.file)
    }

    /// What the journal says each file holds.
    pub(crate) fn named(&self) -> BTreeMap<FileNumber, (Kind, u64)> {
        let last = if self.finished { Kind::Result } else { Kind::Adjoint };
        let states = self.states.iter().map(|&(file, step)| (file, (Kind::State, step)));
        let adjoints = self.adjoints.iter().map(|adjoint| (adjoint.file, (last, adjoint.step)));
        states.chain(adjoints).collect()
    }

    /// Whether the journal says that a file is not needed any more.
    pub(crate) fn is_obsolete(&self, file: FileNumber) -> bool {
        self.obsolete.contains(&file)
    }

    /// Whether the run has ever kept a snapshot.
    pub(crate) fn has_kept_something(&self) -> bool {
        let kept = |record: &Record| !matches!(record, Record::Begun | Record::Opened { .. });
        !self.files.is_empty() || self.history.records.iter().any(|(_, record)| kept(record))
    }

    /// When the run last said anything, in milliseconds since 1970.
    pub fn last_sign_of_life(&self) -> u64 {
        self.history.records.iter().map(|record| record.0).max().unwrap_or(self.manifest.created)
    }

    /// The command line that last worked on the run.
    pub fn command(&self) -> &str {
        let opened = self.history.records.iter().rev().find_map(|(_, record)| match record {
            Record::Opened { command } => Some(command.as_str()),
            _ => None,
        });
        opened.unwrap_or(&self.manifest.command)
    }

    /// Whether a process works on the run at this moment.
    pub fn in_use(&self, fs: &dyn FileSystem) -> Result<bool, Error> {
        let lock = self.dir.join(LOCK);
        Ok(fs.lock(&lock).map_err(Error::io("lock", &lock))?.is_none())
    }

    pub(crate) fn names(&self, file: FileNumber) -> bool {
        self.states.iter().any(|state| state.0 == file) || self.adjoints.iter().any(|a| a.file == file)
    }

    /// A store whose next file number is used by no snapshot that is in the directory or was ever spoken of.
    pub(crate) fn store(&self, fs: Arc<dyn FileSystem>) -> Store {
        let taken = self.leftovers.iter().filter(|name| !name.ends_with(".tmp"));
        let files = self.files.iter().copied().chain(taken.filter_map(|name| number_in(name)));
        let spoken = self.history.records.iter().filter_map(|(_, record)| match record {
            Record::Stored { file, .. } | Record::Reversed { file, .. } | Record::Finished { file, .. } => {
                Some(*file)
            }
            _ => None,
        });
        let next = FileNumber(files.chain(spoken).map(|file| file.0.saturating_add(1)).max().unwrap_or(0));
        let identity = &self.manifest.identity;
        let owner = Owner { run: self.manifest.run.clone(), program: identity.digest() };
        Store::new(fs, &self.dir, owner, next)
    }
}

/// What a journal says is not needed any more.
fn obsolete(history: &History) -> BTreeSet<FileNumber> {
    let (mut obsolete, mut spoken) = (BTreeSet::new(), BTreeSet::new());
    for (_, record) in &history.records {
        match *record {
            Record::Stored { file, supersedes, .. } | Record::Reversed { file, supersedes, .. } => {
                spoken.insert(file);
                obsolete.extend(supersedes);
            }
            Record::Dropped { file } => drop(obsolete.insert(file)),
            Record::Finished { file, .. } => {
                // The result makes all else superfluous.
                obsolete.append(&mut spoken);
                spoken.insert(file);
            }
            Record::Begun | Record::Opened { .. } => {}
        }
    }
    obsolete
}

/// What a journal says is there in the end.
fn replay(history: &History) -> (Vec<(FileNumber, u64)>, Vec<Adjoint>, bool) {
    let mut states = BTreeMap::new();
    let mut adjoints: Vec<Adjoint> = Vec::new();
    let mut finished = false;
    for (_, record) in &history.records {
        match *record {
            Record::Stored { step, file, supersedes } => {
                states.insert(file, step);
                supersedes.map(|old| states.remove(&old));
            }
            Record::Dropped { file } => {
                states.remove(&file);
                adjoints.retain(|adjoint| adjoint.file != file);
            }
            Record::Reversed { step, steps, file, supersedes } => {
                // A part of a run whose other parts had not finished went on.
                if std::mem::take(&mut finished) {
                    adjoints.clear();
                }
                adjoints.push(Adjoint { file, step, steps });
                adjoints.retain(|adjoint| Some(adjoint.file) != supersedes);
            }
            Record::Finished { steps, file } => {
                adjoints = vec![Adjoint { file, step: 0, steps }];
                states.clear();
                finished = true;
            }
            Record::Begun | Record::Opened { .. } => {}
        }
    }
    let mut states: Vec<_> = states.into_iter().collect();
    states.sort_by_key(|&(file, step)| (step, file));
    (states, adjoints, finished)
}
