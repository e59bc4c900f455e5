//! Folders that last as long as their process, and go with it or after it.
//!
//! A folder holds a lock file that its owner has locked for as long as it lives. When the next folder is made beside it,
//! those whose locks nobody holds are cleared away: what killed processes left.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::fs::{EntryKind, FileSystem, LockGuard};
use crate::store::number_in;
use crate::unique::unique_name;

const PREFIX: &str = "ebbtide-scratch-";
const LOCK: &str = "lock";
/// One is enough, unless somebody takes a new folder for an abandoned one in the moment before it is locked.
const ATTEMPTS: usize = 100;

/// A folder that nobody else has; it goes when this value does.
pub(crate) struct Scratch {
    fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    /// What makes it unlike any other.
    pub(crate) name: String,
    /// `None` where the file system has no locks: such a folder has no lock file either, and is never cleared away.
    _lock: Option<LockGuard>,
}

impl Scratch {
    /// Makes a folder below `parent`, which is made too where it is missing.
    pub(crate) fn make(fs: Arc<dyn FileSystem>, parent: &Path) -> Result<Self, Error> {
        fs.create_dir(parent).map_err(Error::io("create", parent))?;
        clear_away_abandoned(&*fs, parent);
        for _ in 0..ATTEMPTS {
            let name = unique_name();
            let dir = parent.join(format!("{PREFIX}{name}"));
            match fs.create_new_dir(&dir) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::io("create", &dir)(error)),
            }
            let lock = dir.join(LOCK);
            match fs.lock(&lock) {
                // Between the making of the file and the locking another may have taken the folder for abandoned: then
                // it is gone, or about to go.
                Ok(Some(guard)) if has_lock_file(&*fs, &dir) => {
                    return Ok(Self { fs, dir, name, _lock: Some(guard) });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::debug!("could not lock {}: {error}", lock.display());
                    let _ = fs.remove(&lock);
                    return Ok(Self { fs, dir, name, _lock: None });
                }
            }
        }
        Err(Error::io("make a folder in", parent)(io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Under the lock, so that nobody else is at it.
        if let Err(error) = remove_folder(&*self.fs, &self.dir) {
            tracing::debug!("could not remove {}: {error}", self.dir.display());
        }
    }
}

/// Removes the folders of processes that are no more. What cannot be removed harms nobody.
fn clear_away_abandoned(fs: &dyn FileSystem, parent: &Path) {
    for entry in fs.list(parent).unwrap_or_default() {
        if entry.kind != EntryKind::Directory || !entry.name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let dir = parent.join(&entry.name);
        // A folder without a lock file is about to get one, or is not of our making.
        if !has_lock_file(fs, &dir) {
            continue;
        }
        let removed = match fs.lock(&dir.join(LOCK)) {
            Ok(None) => continue,
            Ok(Some(_guard)) => remove_folder(fs, &dir),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!("could not clear away {}: {error}", dir.display());
        }
    }
}

fn has_lock_file(fs: &dyn FileSystem, dir: &Path) -> bool {
    fs.list(dir).is_ok_and(|entries| entries.iter().any(|entry| entry.name == LOCK))
}

/// Removes what a scratch folder holds, the lock file last, and the folder; one with anything else in it stays as it is.
fn remove_folder(fs: &dyn FileSystem, dir: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs.list(dir)?.into_iter().map(|entry| entry.name).collect();
    let ours = |name: &std::ffi::OsString| name == LOCK || number_in(&name.to_string_lossy()).is_some();
    if let Some(other) = names.iter().find(|name| !ours(name)) {
        let what = format!("there is `{}` in it", other.to_string_lossy());
        return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, what));
    }
    names.sort_by_key(|name| name == LOCK);
    for name in names {
        fs.remove(&dir.join(name))?;
    }
    fs.remove_dir(dir)
}
