//! The thread that makes snapshots durable while the run goes on computing.
//!
//! The order of the commit protocol: content under a temporary name, sync of the file, rename, sync of the
//! directory, journal line, sync of the journal; only then are superseded files removed. Jobs that wait
//! together share the syncs of directory and journal.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::file::{self, Label, temporary};
use crate::fs::{FileSystem, LockGuard};
use crate::journal::{FileNumber, Journal, Record};
use crate::store::Store;
use crate::{Error, State};

/// How many jobs may share one sync.
const BATCH: usize = 16;
/// How many removals may wait for the frontier.
const DOOMED: usize = 16;

pub(crate) enum Job {
    /// Write a state into a new file, then say so in the journal, then remove the file it supersedes.
    Keep {
        file: FileNumber,
        label: Label,
        state: Arc<State>,
        record: Option<Record>,
        supersedes: Option<FileNumber>,
    },
    /// Say so in the journal, then remove the file.
    Remove { file: FileNumber, record: Option<Record> },
    /// Add a line to the journal.
    Note(Record),
    /// Carry out the removals that wait.
    Settle,
}

/// Whether files must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    Scratch,
    Durable,
}

/// The owner's end of the queue.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    _lock: Option<LockGuard>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    busy: bool,
    progress: u64,
    closing: bool,
    dead: bool,
    failure: Option<Error>,
    lost: Vec<FileNumber>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a change. The timeout only bounds the harm of a change that nobody announced.
    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        let result = self.changed.wait_timeout(queue, Duration::from_millis(100));
        result.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Writer {
    /// Starts the thread. A writer with a journal owns the lock of the run too: it is released when nobody can
    /// write any more.
    pub(crate) fn start(
        store: Store,
        journal: Option<(Journal, LockGuard)>,
        durability: Durability,
    ) -> Result<Self, Error> {
        let (journal, lock) = journal.unzip();
        let shared = Arc::new(Shared::default());
        let mut worker = Worker {
            shared: Arc::clone(&shared),
            fs: Arc::clone(&store.fs),
            store,
            journal,
            durability,
            doomed: Vec::new(),
            doomed_records: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("ebbtide-writer".to_owned())
            .spawn(move || {
                // Whoever waits must learn of the end of this thread, whatever ends it.
                let _announce = AnnounceDeath(Arc::clone(&worker.shared));
                worker.run();
            })
            .map_err(Error::io("start a thread for", Path::new("snapshots")))?;
        Ok(Self { shared, thread: Some(thread), _lock: lock })
    }

    pub(crate) fn submit(&self, job: Job) {
        self.shared.lock().jobs.push_back(job);
        self.shared.changed.notify_all();
    }

    /// How many jobs have been prepared so far.
    pub(crate) fn progress(&self) -> u64 {
        self.shared.lock().progress
    }

    /// Waits until more jobs have been prepared than were `seen`, or until none is left.
    pub(crate) fn wait_beyond(&self, seen: u64) -> Result<(), Error> {
        let mut queue = self.shared.lock();
        while queue.progress == seen && (queue.busy || !queue.jobs.is_empty()) {
            if queue.dead {
                return Err(Error::WorkerDied { doing: "writes snapshots" });
            }
            queue = self.shared.wait(queue);
        }
        Ok(())
    }

    /// Returns when all jobs are done, with the first failure among them.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.submit(Job::Settle);
        let mut queue = self.shared.lock();
        while !queue.jobs.is_empty() || queue.busy {
            if queue.dead {
                return Err(Error::WorkerDied { doing: "writes snapshots" });
            }
            queue = self.shared.wait(queue);
        }
        queue.failure.take().map_or(Ok(()), Err)
    }

    /// The first failure since the last call.
    pub(crate) fn failure(&self) -> Result<(), Error> {
        self.shared.lock().failure.take().map_or(Ok(()), Err)
    }

    /// The files that could not be kept, since the last call.
    pub(crate) fn lost(&self) -> Vec<FileNumber> {
        std::mem::take(&mut self.shared.lock().lost)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct AnnounceDeath(Arc<Shared>);

impl Drop for AnnounceDeath {
    fn drop(&mut self) {
        self.0.lock().dead = true;
        self.0.changed.notify_all();
    }
}

struct Worker {
    shared: Arc<Shared>,
    fs: Arc<dyn FileSystem>,
    store: Store,
    journal: Option<Journal>,
    durability: Durability,
    doomed: Vec<FileNumber>,
    doomed_records: Vec<Record>,
}

/// What a batch has brought under its final name and not yet into the journal.
#[derive(Default)]
struct Batch {
    kept: Vec<FileNumber>,
    records: Vec<Record>,
    superseded: Vec<FileNumber>,
    settle: bool,
}

impl Worker {
    fn run(&mut self) {
        loop {
            let mut queue = self.shared.lock();
            while queue.jobs.is_empty() && !queue.closing {
                queue = self.shared.wait(queue);
            }
            let count = queue.jobs.len().min(BATCH);
            let jobs: Vec<Job> = queue.jobs.drain(..count).collect();
            let last = jobs.is_empty();
            queue.busy = true;
            drop(queue);

            let mut batch = Batch { settle: last, ..Batch::default() };
            for job in jobs {
                self.prepare(job, &mut batch);
                // The buffer of a state that is on disk is free again.
                self.shared.lock().progress += 1;
                self.shared.changed.notify_all();
            }
            self.commit(batch);

            self.shared.lock().busy = false;
            self.shared.changed.notify_all();
            if last {
                return;
            }
        }
    }

    fn prepare(&mut self, job: Job, batch: &mut Batch) {
        match job {
            Job::Keep { file, label, state, record, supersedes } => match self.write(file, &label, &state) {
                Ok(()) => {
                    batch.kept.push(file);
                    batch.records.extend(record);
                    batch.superseded.extend(supersedes);
                }
                Err(error) => self.fail(error, [file]),
            },
            Job::Remove { file, record } => {
                self.doomed.push(file);
                self.doomed_records.extend(record);
            }
            Job::Note(record) => batch.records.push(record),
            Job::Settle => batch.settle = true,
        }
    }

    fn write(&self, file: FileNumber, label: &Label, state: &State) -> Result<(), Error> {
        let path = self.store.path(file);
        let temporary = temporary(&path);
        let written =
            file::write(&*self.fs, &temporary, label, state).and_then(|mut output| match self.durability {
                Durability::Scratch => Ok(()),
                Durability::Durable => output.sync().map_err(Error::io("sync", &temporary)),
            });
        let renamed =
            written.and_then(|()| self.fs.rename(&temporary, &path).map_err(Error::io("rename", &temporary)));
        if renamed.is_err() {
            // Best effort: what stays is removed when the run is opened again.
            let _ = self.fs.remove(&temporary);
        }
        renamed
    }

    fn commit(&mut self, mut batch: Batch) {
        // A state that the run has dropped is still needed after a crash, until the steps that it served are durably
        // reversed. So removals wait for the next adjoint, unless too many wait.
        let frontier_moved = batch.records.iter().any(Record::moves_the_frontier);
        if frontier_moved || batch.settle || self.doomed.len() >= DOOMED || self.journal.is_none() {
            batch.records.append(&mut self.doomed_records);
            batch.superseded.append(&mut self.doomed);
        }
        if let Err(error) = self.make_durable(&batch) {
            // The removals were not announced, so the files must stay; they are found when the run is
            // opened again.
            self.fail(error, batch.kept);
            return;
        }
        for file in batch.superseded {
            let _ = self.fs.remove(&self.store.path(file));
        }
    }

    fn make_durable(&mut self, batch: &Batch) -> Result<(), Error> {
        if self.durability == Durability::Durable && !batch.kept.is_empty() {
            self.fs.sync_dir(&self.store.dir).map_err(Error::io("sync", &self.store.dir))?;
        }
        match &mut self.journal {
            Some(journal) if !batch.records.is_empty() => journal.append(&batch.records),
            _ => Ok(()),
        }
    }

    fn fail(&self, error: Error, files: impl IntoIterator<Item = FileNumber>) {
        let mut queue = self.shared.lock();
        queue.lost.extend(files);
        queue.failure.get_or_insert(error);
    }
}
