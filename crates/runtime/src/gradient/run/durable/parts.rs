//! Frontiers that all parts of a grid write together.
//!
//! Each part has a folder in the directory of the run; an index beside them says what they are parts of. Frontiers are
//! numbered. A part writes the next one only when all parts have made the one before durable, and keeps that one until then;
//! so at any moment there is a frontier that all parts have. A restart takes the newest of these, and numbers continue beyond all
//! that was found: what an interrupted commit left on some parts is never taken for a frontier of all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ebbtide_ir::Program;
use ebbtide_ir::parts::Transport;
use ebbtide_snapshot::fs::FileSystem;
use ebbtide_snapshot::{Adjoint, Dtype, Reached, Recovered, RunDir, SnapshotReader};

use crate::error::{Error, Result};
use crate::gradient::compile::Variant;
use crate::gradient::run::Run;
use crate::launch::parts;

use super::Frontier;
use super::commit::Piece;
use super::layout::ran_words;
use super::restore::{expect, words};

/// The name of the index.
pub(crate) const INDEX: &str = "parts.json";

/// The folder of a launch of this program: that of the part, where all parts launch it together.
pub(crate) fn part_dir(program: &Program, dir: &Path) -> PathBuf {
    match parts::together(program) {
        Some(transport) => folder(dir, transport.part()),
        None => dir.to_path_buf(),
    }
}

fn folder(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part}"))
}

/// What makes the frontiers of a part those of all.
pub(crate) struct Together {
    transport: Arc<dyn Transport>,
    /// The number of the last frontier, of any part.
    number: u64,
    dir: PathBuf,
}

impl Together {
    /// Prepares the directory of a run of all parts, if it is one.
    pub fn open(fs: &dyn FileSystem, dir: &Path, variant: &Variant) -> Result<Option<Together>> {
        let Some(transport) = parts::together(&variant.program) else { return Ok(None) };
        let together = Together { transport, number: 0, dir: dir.to_path_buf() };
        let written = if together.transport.part() == 0 { together.write_index(fs, variant) } else { Ok(()) };
        // Others must not wait for a part that gave up; their launches end with it.
        written?;
        parts::largest(&*together.transport, "the index of a durable run", &[0])?;
        Ok(Some(together))
    }

    pub fn identity(&self) -> String {
        self.transport.identity()
    }

    pub fn dir(&self, dir: &Path) -> PathBuf {
        folder(dir, self.transport.part())
    }

    /// Says what the folders are, for people and for `ebbtide runs`. What the parts are is in the identity of each of them.
    fn write_index(&self, fs: &dyn FileSystem, variant: &Variant) -> Result<()> {
        let path = self.dir.join(INDEX);
        let text = format!(
            "{{\"version\": 1, \"program\": {:?}, \"parts\": {}}}\n",
            variant.source.name,
            self.transport.parts()
        );
        let io = |what: &'static str, path: &Path| {
            let what = format!("{what} {}", path.display());
            move |source: std::io::Error| Error::Io { what, source }
        };
        fs.create_dir(&self.dir).map_err(io("create", &self.dir))?;
        if fs.open(&path).is_ok_and(|file| file.size() == text.len() as u64) {
            return Ok(());
        }
        let temporary = path.with_extension("tmp");
        // What an interruption left.
        let _ = fs.remove(&temporary);
        let mut file = fs.create(&temporary).map_err(io("create", &temporary))?;
        file.write(text.as_bytes()).map_err(io("write", &temporary))?;
        file.sync().map_err(io("sync", &temporary))?;
        drop(file);
        fs.rename(&temporary, &path).map_err(io("rename", &temporary))?;
        fs.sync_dir(&self.dir).map_err(io("sync", &self.dir))
    }

    /// The newest frontier that all parts have, and whether it is the end.
    pub fn choose(&mut self, dir: &mut RunDir, recovered: &Recovered) -> Result<(Option<Adjoint>, bool)> {
        let mut own: Vec<(u64, bool, Adjoint)> = Vec::new();
        for (adjoint, reached) in recovered.frontiers() {
            let mut reader = dir.open_adjoint(&adjoint)?;
            own.push((read_number(&mut reader)?, reached == Reached::End, adjoint));
        }
        let message: Vec<u8> = own
            .iter()
            .flat_map(|(number, finished, _)| [*number, u64::from(*finished)])
            .flat_map(u64::to_le_bytes)
            .collect();
        let all = self.transport.gather("the frontiers of a durable run", &message).map_err(Error::Part)?;
        let pairs = |bytes: &Vec<u8>| -> Vec<(u64, bool)> {
            let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            words.collect::<Vec<u64>>().as_chunks::<2>().0.iter().map(|[n, end]| (*n, *end != 0)).collect()
        };
        let all: Vec<Vec<(u64, bool)>> = all.iter().map(pairs).collect();
        let newest = all.iter().flatten().map(|(number, _)| *number).max().unwrap_or(0);
        self.number = newest;
        let common = |(number, finished, _): &&(u64, bool, Adjoint)| {
            all.iter().all(|part| part.contains(&(*number, *finished)))
        };
        if let Some((_, finished, adjoint)) = own.iter().filter(common).max_by_key(|found| found.0) {
            dir.adjoints().continue_from(adjoint);
            return Ok((Some(*adjoint), *finished));
        }
        // The first frontier may have been under way. A later one is begun only when all parts have the one before.
        if newest <= 1 {
            return Ok((None, false));
        }
        let before = newest - 1;
        let without = |part: &Vec<(u64, bool)>| part.iter().all(|(number, _)| *number < before);
        let part = all.iter().position(without).unwrap_or(0);
        let message = format!(
            "the durable run in {}: part {part} has none of the frontiers that other parts have (the newest is {newest}): its \
             folder {} is missing or damaged; put it back, or remove the whole run to begin it again",
            self.dir.display(),
            folder(&self.dir, part).display()
        );
        Err(parts::disagreed(part, message))
    }

    /// A frontier is at one place of the program on all parts.
    pub fn check_position(&self, run: &Run<'_>) -> Result<()> {
        let mut own: Vec<u64> = run.at.iter().map(|step| *step as u64).collect();
        own.extend(ran_words(&run.ran));
        let all = parts::gather_words(&*self.transport, "the position of a durable run", &own)?;
        match all.iter().position(|words| *words != all[0]) {
            None => Ok(()),
            Some(part) => {
                let message = format!(
                    "the durable run in {}: the frontiers of parts 0 and {part} are not of one place",
                    self.dir.display()
                );
                Err(parts::disagreed(part, message))
            }
        }
    }
}

impl Frontier {
    /// Waits until all parts have made the last frontier durable, and counts the next one.
    pub(super) fn agree(&mut self) -> Result<()> {
        let Some(together) = &mut self.together else { return Ok(()) };
        self.dir.flush()?;
        parts::largest(&*together.transport, "a frontier of all parts", &[together.number])?;
        together.number += 1;
        Ok(())
    }

    /// The number of the frontier that is being written.
    pub(super) fn number_piece(&self) -> Option<Piece> {
        self.together.as_ref().map(|together| Piece::number(together.number))
    }

    /// Is there anything to be done between two actions: on which part was the run cancelled, and is a frontier due?
    pub(crate) fn wishes(&self, cancelled: bool) -> Result<(Option<usize>, bool)> {
        let Some(together) = &self.together else {
            return Ok((cancelled.then_some(0), self.is_due()));
        };
        let own = [u64::from(cancelled), u64::from(self.is_due())];
        let all = parts::gather_words(&*together.transport, "a look between two actions", &own)?;
        Ok((all.iter().position(|words| words[0] != 0), all.iter().any(|words| words[1] != 0)))
    }

    /// The least of a number over all parts that commit together.
    pub(crate) fn least(&self, number: u64) -> Result<u64> {
        let Some(together) = &self.together else { return Ok(number) };
        let agreed = parts::largest(&*together.transport, "the length of an action", &[!number])?;
        Ok(!agreed[0])
    }

    /// Do all parts commit together?
    pub(crate) fn is_of_all_parts(&self) -> bool {
        self.together.is_some()
    }
}

/// The number of a frontier, with which its snapshot begins.
pub(super) fn read_number(reader: &mut SnapshotReader) -> Result<u64> {
    expect(reader, "frontier", Dtype::U64, |shape| shape == [1])?;
    Ok(words(reader, 1)?.first().copied().unwrap_or(0))
}
