//! Arrays of a grid in files: one for each part, and an index.

use std::path::{Path, PathBuf};

use ebbtide::{Array, Element};
use ebbtide_runtime::Arg;
use ebbtide_snapshot::fs::{Disks, FileSystem};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::part::Part;

const INDEX: &str = "index.json";

/// What the files in a directory are parts of.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Index {
    version: u32,
    parts: usize,
    grid: String,
}

fn file(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part}.safetensors"))
}

fn wrong(path: &Path, message: impl Into<String>) -> Error {
    Error::Files { path: path.to_path_buf(), message: message.into() }
}

impl Part {
    fn index(&self) -> Index {
        Index { version: 1, parts: self.parts(), grid: self.grid().identity() }
    }

    /// Writes the arrays of this part, halos included, to a file (`safetensors`) of the directory. All parts call it; when it
    /// returns, the files of all parts and an index are complete and safe against a power cut.
    pub fn save<T: Element, const R: usize>(
        &self,
        dir: impl AsRef<Path>,
        arrays: &[(&str, &Array<T, R>)],
    ) -> Result<()> {
        let dir = dir.as_ref();
        let saved = Disks.create_dir(dir).map_err(|e| wrong(dir, e.to_string())).and_then(|()| {
            let members: Vec<(String, Arg<'_>)> =
                arrays.iter().map(|(name, array)| (name.to_string(), Arg::Read(array.any()))).collect();
            Ok(ebbtide_runtime::save(&file(dir, self.number()), &members)?)
        });
        self.all_succeeded("the saving of parts", saved)?;
        let indexed = if self.number() == 0 { self.write_index(dir) } else { Ok(()) };
        self.all_succeeded("the index of saved parts", indexed)
    }

    fn write_index(&self, dir: &Path) -> Result<()> {
        let path = dir.join(INDEX);
        let text = serde_json::to_string_pretty(&self.index()).map_err(|e| wrong(&path, e.to_string()))?;
        let temporary = path.with_extension("tmp");
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error: std::io::Error| wrong(&path, error.to_string())
        };
        // What an interrupted saving left.
        let _ = Disks.remove(&temporary);
        let mut output = Disks.create(&temporary).map_err(io(&temporary))?;
        output.write(text.as_bytes()).map_err(io(&temporary))?;
        output.sync().map_err(io(&temporary))?;
        drop(output);
        Disks.rename(&temporary, &path).map_err(io(&path))?;
        Disks.sync_dir(dir).map_err(io(dir))
    }

    /// Reads back what [`save`](Part::save) wrote, on any number of processes. The grid must be the same cut; the error names a
    /// part whose file is missing or damaged.
    pub fn load<T: Element, const R: usize>(
        &self,
        dir: impl AsRef<Path>,
        arrays: &mut [(&str, &mut Array<T, R>)],
    ) -> Result<()> {
        let dir = dir.as_ref();
        let loaded = self.load_here(dir, arrays);
        self.all_succeeded("the loading of parts", loaded)
    }

    fn load_here<T: Element, const R: usize>(
        &self,
        dir: &Path,
        arrays: &mut [(&str, &mut Array<T, R>)],
    ) -> Result<()> {
        let path = dir.join(INDEX);
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(&path, e.to_string()))?;
        let index: Index = serde_json::from_str(&text).map_err(|e| wrong(&path, e.to_string()))?;
        if index != self.index() {
            let message = format!(
                "these are {} parts of another grid ({}); this one is {}",
                index.parts,
                index.grid,
                self.grid().identity()
            );
            return Err(wrong(&path, message));
        }
        let mut members: Vec<(String, Arg<'_>)> =
            arrays.iter_mut().map(|(name, array)| (name.to_string(), Arg::Write(array.any_mut()))).collect();
        let path = file(dir, self.number());
        ebbtide_runtime::load(&path, &mut members)
            .map(|_| ())
            .map_err(|error| wrong(&path, format!("part {}: {error}", self.number())))
    }

    /// Fails on all parts where it failed on one.
    pub(crate) fn all_succeeded(&self, at: &str, own: Result<()>) -> Result<()> {
        let said = own.as_ref().err().map(|error| error.to_string()).unwrap_or_default();
        let all = self.link.gather_outside(at, said.as_bytes())?;
        own?;
        match all.iter().position(|said| !said.is_empty()) {
            None => Ok(()),
            Some(part) => {
                Err(Error::Part(format!("part {part} failed: {}", String::from_utf8_lossy(&all[part]))))
            }
        }
    }
}
