//! The inversion on disk: written after every evaluation, gone on with after any interruption.

use std::path::{Path, PathBuf};

use ebbtide_snapshot::fs::{Disks, FileSystem, LockGuard};
use ebbtide_snapshot::{Checkpoint, Kind, Label, Position, read_snapshot, write_snapshot};
use serde::{Deserialize, Serialize};

use super::lbfgs::Lbfgs;
use super::progress::History;
use crate::Failure;

/// What makes two inversions the same one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    pub grid: String,
    pub steps: usize,
    pub sources: usize,
    pub iterations: u64,
    pub memory: u64,
    pub device: String,
    /// The grid and the noise of the data.
    #[serde(default)]
    pub data: String,
    /// The text of the differentiated program and the version of the engine, as a checksum.
    pub program: String,
}

impl Options {
    /// What differs, in words; empty if nothing does.
    fn differences(&self, other: &Options) -> Vec<String> {
        let rows = [
            ("--grid", self.grid.clone(), other.grid.clone()),
            ("--steps", self.steps.to_string(), other.steps.to_string()),
            ("--sources", self.sources.to_string(), other.sources.to_string()),
            ("--iterations", self.iterations.to_string(), other.iterations.to_string()),
            ("--memory", self.memory.to_string(), other.memory.to_string()),
            ("--device", self.device.clone(), other.device.clone()),
            ("--data-grid, --noise", self.data.clone(), other.data.clone()),
            ("the program of this version of Ebbtide", self.program.clone(), other.program.clone()),
        ];
        let differing = rows.into_iter().filter(|(_, ours, theirs)| ours != theirs);
        differing.map(|(name, ours, theirs)| format!("{name} was {theirs} and is {ours}")).collect()
    }
}

/// The directory of an inversion, held by this process alone.
pub struct Durable {
    file: PathBuf,
    options: Options,
    _lock: LockGuard,
}

impl Durable {
    /// Opens or makes the directory.
    pub fn open(dir: &Path, options: Options) -> Result<Durable, Failure> {
        let io = |what: &str| {
            let what = format!("could not {what} {}", dir.display());
            move |error: std::io::Error| Failure::Other(format!("{what}: {error}"))
        };
        Disks.create_dir(dir).map_err(io("make"))?;
        let lock = Disks.lock(&dir.join("lock")).map_err(io("lock"))?.ok_or_else(|| {
            Failure::Other(format!(
                "another process is at work in {}: wait for it, or stop it",
                dir.display()
            ))
        })?;
        Ok(Durable { file: dir.join("inversion.safetensors"), options, _lock: lock })
    }

    /// What an earlier process left, if there was one.
    pub fn load(&self, unknowns: usize) -> Result<Option<(Lbfgs, History)>, Failure> {
        if !self.file.exists() {
            return Ok(None);
        }
        let mut checkpoint = Checkpoint::default();
        read_snapshot(&Disks, &self.file, &mut checkpoint)?;
        let state = checkpoint.state;
        let theirs: Options = serde_json::from_slice(&state.get_vec::<u8>("options")?)?;
        let differences = self.options.differences(&theirs);
        if !differences.is_empty() {
            return Err(Failure::Other(format!(
                "{} was made with other options: {}\nuse the same command, or another directory",
                self.file.parent().unwrap_or(&self.file).display(),
                differences.join("; ")
            )));
        }
        Ok(Some((Lbfgs::load(&state, unknowns)?, History::load(&state)?)))
    }

    /// Replaces what is on disk in one move; returns when it would survive a power cut.
    pub fn save(&self, optimiser: &Lbfgs, history: &History) -> Result<(), Failure> {
        let mut checkpoint = Checkpoint::at(Position::before_step(optimiser.evaluations()));
        let state = &mut checkpoint.state;
        state.put("options", &serde_json::to_vec(&self.options)?)?;
        optimiser.save(state)?;
        history.save(state)?;
        let label = Label {
            kind: Kind::State,
            step: optimiser.evaluations(),
            steps: None,
            run: String::new(),
            program: self.options.program.clone(),
        };
        Ok(write_snapshot(&Disks, &self.file, &label, &checkpoint)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options {
            grid: "40x60".to_owned(),
            steps: 10,
            sources: 2,
            iterations: 3,
            memory: 1 << 20,
            device: "cpu".to_owned(),
            data: String::new(),
            program: "0".to_owned(),
        }
    }

    #[test]
    fn what_was_saved_is_loaded_and_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let durable = Durable::open(dir.path(), options()).unwrap();
        assert!(matches!(durable.load(2), Ok(None)));
        let mut optimiser = Lbfgs::new(vec![1.0, 2.0], 0.1);
        optimiser.tell(3.0, &[4.0, 5.0]);
        durable.save(&optimiser, &History::default()).unwrap();
        let (loaded, _) = durable.load(2).ok().flatten().unwrap();
        assert_eq!(loaded, optimiser);

        let mut bytes = std::fs::read(&durable.file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&durable.file, bytes).unwrap();
        assert!(durable.load(2).is_err());
    }

    #[test]
    fn other_options_are_named() {
        let differences = Options { steps: 11, ..options() }.differences(&options());
        assert_eq!(differences, ["--steps was 10 and is 11"]);
    }

    #[test]
    fn two_processes_do_not_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Durable::open(dir.path(), options()).ok().unwrap();
        assert!(Durable::open(dir.path(), options()).is_err());
    }
}
