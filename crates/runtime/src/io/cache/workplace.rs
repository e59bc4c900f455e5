//! Folders in which entries are built.
//!
//! A workplace is a folder of its own inside the cache folder, with a lock that its process holds while it builds. A
//! folder whose lock is free belongs to a process that is gone: it is counted and can be removed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Begins the names of folders in which something is built.
const BUILDING: &str = ".ebbtide-build-";

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
        // Between making the folder and locking it, another process may clear the cache: then another one is made.
        let mut tries = 0;
        loop {
            match Workplace::once(cache) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && cache.is_dir() && tries < 100 => {
                    tries += 1
                }
                made => return made,
            }
        }
    }

    fn once(cache: &Path) -> std::io::Result<Workplace> {
        let folder = tempfile::Builder::new().prefix(BUILDING).rand_bytes(RANDOM).tempdir_in(cache)?;
        let path = folder.path().join(LOCK);
        let lock = File::create_new(&path)?;
        lock.lock()?;
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
    let places = entries.filter(|entry| {
        is_temporary(&entry.file_name().to_string_lossy(), BUILDING)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    places.map(|entry| entry.path()).filter(|place| is_abandoned(place)).collect()
}

fn is_abandoned(place: &Path) -> bool {
    match File::open(place.join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(e) => e.kind() == std::io::ErrorKind::NotFound,
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
