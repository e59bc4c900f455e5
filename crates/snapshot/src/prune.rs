//! Clearing away what runs leave behind.

use std::path::Path;

use crate::Error;
use crate::fs::FileSystem;
use crate::manifest::MANIFEST;
use crate::run_dir::lock;
use crate::store::number_in;
use crate::survey::{JOURNAL, LOCK, Survey};

/// The files of a run that nothing speaks of any more: what interruptions left behind.
///
/// Only names that a run gives are among them: a file of yours in the directory of a run is never touched.
pub fn leftovers(survey: &Survey) -> Vec<String> {
    survey.leftovers.iter().filter(|name| number_in(name).is_some()).cloned().collect()
}

/// Removes the leftovers of a run that nobody works on, and returns their names.
pub fn remove_leftovers(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<String>, Error> {
    let _lock = lock(fs, dir)?;
    // Read under the lock: what was a leftover before may be a snapshot by now.
    let names = leftovers(&Survey::read(fs, dir)?);
    for name in &names {
        remove(fs, &dir.join(name))?;
    }
    Ok(names)
}

/// Removes a run that nobody works on: its files, and its directory if nothing else is in it.
pub fn remove_run(fs: &dyn FileSystem, dir: &Path) -> Result<(), Error> {
    let _lock = lock(fs, dir)?;
    let entries = fs.list(dir).map_err(Error::io("list", dir))?;
    let snapshots =
        entries.iter().map(|entry| entry.name.to_string_lossy()).filter(|n| number_in(n).is_some());
    for name in snapshots {
        remove(fs, &dir.join(&*name))?;
    }
    // The manifest goes late: until then the directory is a run and can be removed again.
    for name in [JOURNAL, MANIFEST, LOCK] {
        if entries.iter().any(|entry| entry.name == name) {
            remove(fs, &dir.join(name))?;
        }
    }
    if entries.iter().all(|entry| is_of_a_run(&entry.name.to_string_lossy())) {
        fs.remove_dir(dir).map_err(Error::io("remove", dir))?;
    }
    Ok(())
}

fn is_of_a_run(name: &str) -> bool {
    number_in(name).is_some() || [JOURNAL, MANIFEST, LOCK].contains(&name)
}

fn remove(fs: &dyn FileSystem, path: &Path) -> Result<(), Error> {
    fs.remove(path).map_err(Error::io("remove", path))
}
