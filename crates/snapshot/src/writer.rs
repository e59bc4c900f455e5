//! The thread that makes snapshots durable while the run continues computing.
//!
//! The order of the commit protocol: content under a temporary name, sync of the file, rename, sync of the
//! directory, journal line, sync of the journal; only then are superseded files removed. Jobs that wait
//! together share the syncs of directory and journal.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::file::{self, temporary};
use crate::fs::{FileSystem, LockGuard, OutputFile};
use crate::journal::{FileNumber, Journal, Record};
use crate::store::Store;
use crate::{Checkpoint, Error, Label};

/// How many jobs may share one sync.
const BATCH: usize = 16;
/// How many removals may wait for the frontier.
const DOOMED: usize = 16;

pub(crate) enum Job {
    /// Complete a new file, then say so in the journal, then remove the file it supersedes.
    Keep { file: FileNumber, content: Content, record: Option<Record>, supersedes: Option<FileNumber> },
    /// Say so in the journal, then remove the file.
    Remove { file: FileNumber, record: Option<Record> },
    /// Add a line to the journal.
    Note(Record),
    /// Carry out the removals that wait.
    Settle,
}

/// What a new file will hold.
pub(crate) enum Content {
    /// This checkpoint.
    Checkpoint { label: Label, checkpoint: Arc<Checkpoint> },
    /// What has been written into it under its temporary name; it is not synced.
    Written(Box<dyn OutputFile>),
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
    /// Jobs that failed, with their states. They are tried again once the failure has been reported.
    parked: Vec<Job>,
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
            doomed: Batch::default(),
            unsaid: Batch::default(),
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

    /// Returns when all jobs are done, or with the first failure among them.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.check()?;
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

    /// Reports the first failure since the last call. If there was none, jobs that failed before are tried again.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut queue = self.shared.lock();
        if let Some(failure) = queue.failure.take() {
            return Err(failure);
        }
        // Ahead of everything else: later jobs may supersede them.
        while let Some(job) = queue.parked.pop() {
            queue.jobs.push_front(job);
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.shared.lock();
        queue.jobs.is_empty() && !queue.busy
    }

    /// Gives up a file that could not be kept and is not needed any more.
    pub(crate) fn give_up(&self, unneeded: FileNumber) {
        self.shared.lock().parked.retain(|job| !matches!(job, Job::Keep { file, .. } if *file == unneeded));
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
    /// Removals that wait for the frontier.
    doomed: Batch,
    /// What a failure has kept out of the journal, to be said with the next batch.
    unsaid: Batch,
}

/// What has been done and not yet been said in the journal.
#[derive(Default)]
struct Batch {
    /// Whether a file has got its final name, so that the directory must be synced.
    renamed: bool,
    records: Vec<Record>,
    /// Files to remove once the records are safe.
    obsolete: Vec<FileNumber>,
}

impl Batch {
    fn append(&mut self, mut other: Batch) {
        self.renamed |= other.renamed;
        self.records.append(&mut other.records);
        self.obsolete.append(&mut other.obsolete);
    }
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

            let mut batch = std::mem::take(&mut self.unsaid);
            let mut settle = last;
            for job in jobs {
                settle |= matches!(job, Job::Settle);
                self.prepare(job, &mut batch);
                // The buffer of a state that is on disk is free again.
                self.shared.lock().progress += 1;
                self.shared.changed.notify_all();
            }
            // A state that the run has dropped is still needed after a crash, until the steps that it served are
            // durably reversed. So removals wait for the next adjoint, unless too many wait.
            let frontier_moved = batch.records.iter().any(Record::moves_the_frontier);
            let many = self.doomed.obsolete.len() >= DOOMED;
            if frontier_moved || settle || many || self.journal.is_none() {
                batch.append(std::mem::take(&mut self.doomed));
            }
            self.commit(batch);

            self.shared.lock().busy = false;
            self.shared.changed.notify_all();
            if last {
                return;
            }
        }
    }

    fn prepare(&mut self, mut job: Job, batch: &mut Batch) {
        match job {
            Job::Keep { file, ref mut content, ref record, supersedes } => {
                match self.complete(file, content) {
                    Ok(()) => {
                        batch.renamed = true;
                        batch.records.extend(record.clone());
                        batch.obsolete.extend(supersedes);
                    }
                    Err(error) => {
                        let mut queue = self.shared.lock();
                        queue.failure.get_or_insert(error);
                        queue.parked.push(job);
                    }
                }
            }
            Job::Remove { file, record } => {
                self.doomed.obsolete.push(file);
                self.doomed.records.extend(record);
            }
            Job::Note(record) => batch.records.push(record),
            Job::Settle => {}
        }
    }

    fn complete(&self, file: FileNumber, content: &mut Content) -> Result<(), Error> {
        let path = self.store.path(file);
        let temporary = temporary(&path);
        let mut written;
        let output = match content {
            Content::Checkpoint { label, checkpoint } => {
                written = file::write(&*self.fs, &temporary, label, checkpoint)?;
                &mut written
            }
            Content::Written(output) => output,
        };
        if self.durability == Durability::Durable {
            output.sync().map_err(Error::io("sync", &temporary))?;
        }
        self.fs.rename(&temporary, &path).map_err(Error::io("rename", &temporary))
    }

    fn commit(&mut self, batch: Batch) {
        match self.make_durable(&batch) {
            Ok(()) => {
                for file in batch.obsolete {
                    // Best effort: what stays harms nobody.
                    let _ = self.fs.remove(&self.store.path(file));
                }
            }
            Err(error) => {
                self.shared.lock().failure.get_or_insert(error);
                self.unsaid = batch;
            }
        }
    }

    fn make_durable(&mut self, batch: &Batch) -> Result<(), Error> {
        if self.durability == Durability::Durable && batch.renamed {
            self.fs.sync_dir(&self.store.dir).map_err(Error::io("sync", &self.store.dir))?;
        }
        match &mut self.journal {
            Some(journal) if !batch.records.is_empty() => journal.append(&batch.records),
            _ => Ok(()),
        }
    }
}
