//! Folders in which entries are built.
//!
//! A workplace is a folder of its own inside the cache folder, with a lock that its process holds while it builds. A
//! folder whose lock is free belongs to a process that is gone: it is counted and can be removed.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Begins the names of folders in which something is built.
const BUILDING: &str = ".ebbtide-build-";

/// Begins the names of such folders while they are removed.
const GONE: &str = ".ebbtide-gone-";

/// The random characters at the end of a temporary name.
const RANDOM: usize = 6;

/// The file in a workplace that its process has locked.
const LOCK: &str = "lock";

/// A folder to build in; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Workplace {
    folder: tempfile::TempDir,
    /// Locked until it is closed.
    _lock: File,
}

impl Workplace {
    /// A new one in this cache folder.
    pub fn new(cache: &Path) -> std::io::Result<Workplace> {
        // Between making the folder and locking it, someone else may take it for abandoned: then another one is made.
        let lost = |e: &std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::AlreadyExists);
        let mut tries = 0;
        loop {
            match Workplace::once(cache) {
                Err(e) if lost(&e) && cache.is_dir() && tries < 100 => tries += 1,
                made => return made,
            }
        }
    }

    fn once(cache: &Path) -> std::io::Result<Workplace> {
        let folder = tempfile::Builder::new().prefix(BUILDING).rand_bytes(RANDOM).tempdir_in(cache)?;
        let path = folder.path().join(LOCK);
        let lock = File::create_new(&path)?;
        lock.lock()?;
        // Who removes a folder holds its lock until it is gone.
        fs::metadata(&path)?;
        Ok(Workplace { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The workplaces in a cache folder whose processes are gone.
pub(super) fn abandoned(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).into_iter().flatten().flatten();
    let named = |entry: &fs::DirEntry, prefix| is_temporary(&entry.file_name().to_string_lossy(), prefix);
    let places = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let abandoned =
        places.filter(|entry| named(entry, GONE) || (named(entry, BUILDING) && is_abandoned(&entry.path())));
    abandoned.map(|entry| entry.path()).collect()
}

/// Removes the workplaces in a cache folder whose processes are gone.
pub(super) fn remove_abandoned(cache: &Path) {
    for place in abandoned(cache) {
        let Some(gone) = gone(&place) else {
            let _ = fs::remove_dir_all(place);
            continue;
        };
        // Since it was looked at, its process may have locked it: whoever has the lock has the folder. Under another name nothing
        // can be put into it any more.
        if let Some(_lock) = lock_of_abandoned(&place) {
            let place = if fs::rename(&place, &gone).is_ok() { gone } else { place };
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// What a workplace is called while it is removed; `None` for one that is called so.
fn gone(place: &Path) -> Option<PathBuf> {
    let random = place.file_name()?.to_str()?.strip_prefix(BUILDING)?;
    Some(place.with_file_name(format!("{GONE}{random}")))
}

/// The lock of a workplace that no process has; one is made where there is none, so that none can be made any more.
fn lock_of_abandoned(place: &Path) -> Option<File> {
    let path = place.join(LOCK);
    let lock = match File::create_new(&path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => File::open(&path),
        made => made,
    };
    let lock = lock.ok()?;
    (!matches!(lock.try_lock(), Err(TryLockError::WouldBlock))).then_some(lock)
}

fn is_abandoned(place: &Path) -> bool {
    match File::open(place.join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(e) => e.kind() == ErrorKind::NotFound,
    }
}

/// The bytes of the files in a folder and below.
pub(super) fn bytes_in(folder: &Path) -> u64 {
    let (mut bytes, mut folders) = (0, vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => bytes += meta.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

/// Is it a temporary name that begins so?
pub(super) fn is_temporary(name: &str, prefix: &str) -> bool {
    let random = name.strip_prefix(prefix);
    random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric()))
}
