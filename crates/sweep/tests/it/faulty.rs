//! A file system in memory that forgets what was not synced, and fails where it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use ebbtide_snapshot::fs::{Entry, EntryKind, FileSystem, InputFile, LockGuard, OutputFile};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// One operation fails.
    Error(io::ErrorKind),
    /// One write writes half of what it should, one read ends early; other operations fail.
    Short,
    /// The machine goes down: this operation and all after it fail.
    PowerCut,
}

/// What a power cut leaves of that which was not synced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsynced {
    Lost,
    /// Names that were renamed are there, contents reach half of what was written since the last sync.
    Torn,
    Kept,
}

#[derive(Clone, Debug, Default)]
pub struct Faulty(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    contents: Vec<Content>,
    locks: BTreeSet<PathBuf>,
    operations: u64,
    log: Vec<&'static str>,
    plan: Option<(u64, Fault)>,
    fired: bool,
    down: bool,
    /// Every so many operations the disk is kept as it is.
    recording: Option<(u64, Vec<Faulty>)>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
}

impl Faulty {
    /// A healthy one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans a fault for the operation with this number, counted from now.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        let mut inner = self.lock_inner();
        inner.plan = Some((inner.operations + operation, fault));
        inner.fired = false;
    }

    /// From now on keeps the disk as it is before every so many operations.
    pub fn record_every(&self, stride: u64) {
        self.lock_inner().recording = Some((stride, Vec::new()));
    }

    /// What was kept, in order.
    pub fn take_recording(&self) -> Vec<Faulty> {
        self.lock_inner().recording.take().map(|(_, moments)| moments).unwrap_or_default()
    }

    /// Whether the planned fault has come.
    pub fn fired(&self) -> bool {
        self.lock_inner().fired
    }

    /// The machine comes up again, healthy.
    pub fn reboot(&self, unsynced: Unsynced) {
        let mut inner = self.lock_inner();
        (inner.plan, inner.down) = (None, false);
        inner.locks.clear();
        match unsynced {
            Unsynced::Kept => {}
            Unsynced::Torn => {
                for content in &mut inner.contents {
                    let durable = content.durable.len().min(content.now.len());
                    let half = durable + (content.now.len() - durable) / 2;
                    content.now.truncate(half);
                }
            }
            Unsynced::Lost => {
                inner.names = inner.durable_names.clone();
                for content in &mut inner.contents {
                    content.now = content.durable.clone();
                }
            }
        }
        inner.durable_names = inner.names.clone();
        for content in &mut inner.contents {
            content.durable = content.now.clone();
        }
    }

    /// The names of the files and their sizes.
    pub fn files(&self) -> Vec<(PathBuf, usize)> {
        let inner = self.lock_inner();
        inner.names.iter().map(|(name, &id)| (name.clone(), inner.contents[id].now.len())).collect()
    }

    /// Flips bits of one byte of a file.
    pub fn flip(&self, file: &Path, byte: usize, mask: u8) {
        let mut inner = self.lock_inner();
        let id = inner.names[file];
        inner.contents[id].now[byte] ^= mask;
        inner.contents[id].durable = inner.contents[id].now.clone();
    }

    /// Whether there is such a file.
    pub fn exists(&self, file: &Path) -> bool {
        self.lock_inner().names.contains_key(file)
    }

    /// What a file holds.
    pub fn content(&self, file: &Path) -> Vec<u8> {
        let inner = self.lock_inner();
        inner.names.get(file).map(|&id| inner.contents[id].now.clone()).unwrap_or_default()
    }

    /// Makes a file hold this; one that is not there is made.
    pub fn set_content(&self, file: &Path, bytes: Vec<u8>) {
        let mut inner = self.lock_inner();
        let id = match inner.names.get(file) {
            Some(&id) => id,
            None => inner.new_file(file),
        };
        inner.contents[id] = Content { now: bytes.clone(), durable: bytes };
        inner.durable_names = inner.names.clone();
    }

    /// Removes a file, as somebody else would.
    pub fn forget(&self, file: &Path) {
        let mut inner = self.lock_inner();
        inner.names.remove(file);
        inner.durable_names.remove(file);
    }

    /// All names and contents.
    pub fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let inner = self.lock_inner();
        inner.names.iter().map(|(name, &id)| (name.clone(), inner.contents[id].now.clone())).collect()
    }

    /// A disk with the same content that shares nothing with this one.
    pub fn fork(&self) -> Self {
        self.lock_inner().fork()
    }

    /// The kinds of operations that were carried out.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        self.lock_inner().log.iter().copied().collect()
    }

    fn lock_inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Counts an operation and lets the planned fault happen.
    fn operation(
        &self,
        kind: &'static str,
    ) -> Result<MutexGuard<'_, Inner>, (MutexGuard<'_, Inner>, io::Error, bool)> {
        let mut inner = self.lock_inner();
        let number = inner.operations;
        inner.operations += 1;
        if inner.recording.as_ref().is_some_and(|(stride, _)| number.is_multiple_of(*stride)) {
            let now = inner.fork();
            inner.recording.iter_mut().for_each(|(_, moments)| moments.push(now.clone()));
        }
        inner.log.push(kind);
        let down = || io::Error::other("the machine is down");
        if inner.down {
            return Err((inner, down(), false));
        }
        match inner.plan {
            Some((at, fault)) if at == number => {
                inner.fired = true;
                match fault {
                    Fault::Error(kind) => Err((inner, kind.into(), false)),
                    Fault::Short => Err((inner, io::ErrorKind::StorageFull.into(), true)),
                    Fault::PowerCut => {
                        inner.down = true;
                        Err((inner, down(), true))
                    }
                }
            }
            _ => Ok(inner),
        }
    }

    fn plain(&self, kind: &'static str) -> io::Result<MutexGuard<'_, Inner>> {
        self.operation(kind).map_err(|(_, error, _)| error)
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl FileSystem for Faulty {
    fn create_dir(&self, _dir: &Path) -> io::Result<()> {
        self.plain("create_dir").map(|_| ())
    }

    fn create_new_dir(&self, _dir: &Path) -> io::Result<()> {
        self.plain("create_new_dir").map(|_| ())
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        let mut inner = self.plain("create")?;
        if inner.names.contains_key(file) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = inner.new_file(file);
        Ok(Box::new(Open { disk: self.clone(), id, at: 0, size: 0 }))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        let mut inner = self.plain("append")?;
        let id = match inner.names.get(file) {
            Some(&id) => id,
            None => inner.new_file(file),
        };
        Ok(Box::new(Open { disk: self.clone(), id, at: 0, size: 0 }))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>> {
        let inner = self.plain("open")?;
        let &id = inner.names.get(file).ok_or_else(not_found)?;
        let size = inner.contents[id].now.len() as u64;
        Ok(Box::new(Open { disk: self.clone(), id, at: 0, size }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.plain("rename")?;
        let id = inner.names.remove(from).ok_or_else(not_found)?;
        inner.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.plain("remove")?.names.remove(file).map(|_| ()).ok_or_else(not_found)
    }

    fn remove_dir(&self, _dir: &Path) -> io::Result<()> {
        self.plain("remove_dir").map(|_| ())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.plain("sync_dir")?;
        let in_dir = |path: &PathBuf| path.parent() == Some(dir);
        let now: Vec<_> =
            inner.names.iter().filter(|(path, _)| in_dir(path)).map(|(p, &id)| (p.clone(), id)).collect();
        inner.durable_names.retain(|path, _| !in_dir(path));
        inner.durable_names.extend(now);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let inner = self.plain("list")?;
        let entries = inner.names.iter().filter(|(path, _)| path.parent() == Some(dir)).map(|(path, &id)| {
            let name = path.file_name().map_or_else(OsString::new, |name| name.to_owned());
            Entry { name, kind: EntryKind::File, bytes: inner.contents[id].now.len() as u64 }
        });
        Ok(entries.collect())
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let mut inner = self.plain("lock")?;
        if !inner.locks.insert(file.to_owned()) {
            return Ok(None);
        }
        if !inner.names.contains_key(file) {
            inner.new_file(file);
        }
        Ok(Some(Box::new(Lock { disk: self.clone(), file: file.to_owned() })))
    }
}

impl Inner {
    fn fork(&self) -> Faulty {
        Faulty(Arc::new(Mutex::new(Inner {
            names: self.names.clone(),
            durable_names: self.durable_names.clone(),
            contents: self.contents.clone(),
            ..Inner::default()
        })))
    }

    fn new_file(&mut self, file: &Path) -> usize {
        self.contents.push(Content::default());
        self.names.insert(file.to_owned(), self.contents.len() - 1);
        self.contents.len() - 1
    }
}

struct Lock {
    disk: Faulty,
    file: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.lock_inner().locks.remove(&self.file);
    }
}

struct Open {
    disk: Faulty,
    id: usize,
    at: usize,
    size: u64,
}

impl OutputFile for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.disk.operation("write") {
            Ok(mut inner) => inner.contents[self.id].now.extend_from_slice(bytes),
            Err((mut inner, error, short)) => {
                if short {
                    inner.contents[self.id].now.extend_from_slice(&bytes[..bytes.len() / 2]);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.disk.plain("set_len")?.contents[self.id].now.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.disk.plain("sync")?;
        let content = &mut inner.contents[self.id];
        content.durable = content.now.clone();
        Ok(())
    }
}

impl InputFile for Open {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let inner = self.disk.plain("read")?;
        let end = self.at + bytes.len();
        let content = inner.contents[self.id].now.get(self.at..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(content);
        self.at = end;
        Ok(())
    }
}
