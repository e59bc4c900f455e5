//! Clearing away what runs leave behind.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::fs::FileSystem;
use crate::manifest::MANIFEST;
use crate::run_dir::lock;
use crate::store::{file_name, number_in};
use crate::survey::{JOURNAL, LOCK, Survey};

/// The files of a run that are of no use to it: what interruptions left behind, and, where the gradient is complete, all
/// snapshots but that.
///
/// Only names that a run gives are among them: a file of yours in the directory of a run is never touched. A snapshot that
/// is sound and may be continued from is not among them either, nor a damaged one that the journal names.
pub fn leftovers(fs: &Arc<dyn FileSystem>, survey: &Survey) -> Vec<String> {
    let found = survey.examine(fs);
    let result = found.adjoint.filter(|_| found.finished).map(|adjoint| file_name(adjoint.file));
    let sound: BTreeSet<String> = found.sound.iter().map(|file| file_name(*file)).collect();
    let unnamed = survey.leftovers.iter().filter(|name| number_in(name).is_some()).cloned();
    match result {
        Some(result) => {
            let all = survey.files.iter().map(|file| file_name(*file));
            let all: BTreeSet<String> = all.chain(unnamed).collect();
            all.into_iter().filter(|name| *name != result).collect()
        }
        None => unnamed.filter(|name| !sound.contains(name)).collect(),
    }
}

/// Removes the leftovers of a run that no process works on, and returns their names.
pub fn remove_leftovers(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Vec<String>, Error> {
    let _lock = lock(&**fs, dir)?;
    // Read under the lock: what was a leftover before may be a snapshot by now.
    let names = leftovers(fs, &Survey::read(&**fs, dir)?);
    for name in &names {
        remove(&**fs, &dir.join(name))?;
    }
    Ok(names)
}

/// Removes a run that no process works on: its files, and its directory if nothing else is in it.
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
