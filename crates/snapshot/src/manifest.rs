use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

use ebbtide_checkpoint::zeroed;
use serde::{Deserialize, Serialize};

use crate::file::temporary;
use crate::fs::FileSystem;
use crate::journal::now;
use crate::survey::JOURNAL;
use crate::unique::unique_name;
use crate::{Element, Error, State};

pub(crate) const MANIFEST: &str = "manifest.json";
/// Every format of a manifest begins so; what follows is its number.
const FORMATS: &str = "ebbtide run ";
const FORMAT: &str = "ebbtide run 5";
const LARGEST_MANIFEST: u64 = 16 << 20;

/// What a run computes: the program and everything that its result depends on.
///
/// ```
/// use ebbtide_snapshot::Identity;
///
/// let identity = Identity::new("heat", "3f9a").input("nu", 0.1).input_array("target", &[1.0, 2.0]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    program: String,
    hash: String,
    /// The version of the laws of the language, where the program is written in ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    laws: Option<u32>,
    inputs: BTreeMap<String, String>,
}

impl Identity {
    /// A program, by the name that people know and a hash that changes when its meaning does.
    pub fn new(program: impl Into<String>, hash: impl Into<String>) -> Self {
        Self { program: program.into(), hash: hash.into(), laws: None, inputs: BTreeMap::new() }
    }

    /// Says under which version of the laws of the language the program is run.
    #[must_use]
    pub fn laws(mut self, version: u32) -> Self {
        self.laws = Some(version);
        self
    }

    /// Adds a value that the result depends on.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.inputs.insert(name.into(), value.to_string());
        self
    }

    /// Adds an array that the result depends on; its length and a hash are kept.
    #[must_use]
    pub fn input_array<T: Element>(self, name: impl Into<String>, values: &[T]) -> Self {
        let mut bytes = vec![0; values.len() * T::DTYPE.size()];
        T::encode(values, &mut bytes);
        let summary = summary(T::DTYPE, &[values.len()], &bytes);
        self.input(name, summary)
    }

    /// Adds bytes that the result depends on, as they lie in memory; their number and a hash are kept.
    #[must_use]
    pub fn input_bytes(self, name: impl Into<String>, bytes: &[u8]) -> Self {
        let summary = summary(crate::Dtype::U8, &[bytes.len()], bytes);
        self.input(name, summary)
    }

    /// Adds all arrays of the state that the run starts from.
    #[must_use]
    pub fn initial_state(mut self, state: &State) -> Self {
        for array in state.arrays() {
            let summary = summary(array.dtype, array.shape, array.bytes);
            self.inputs.insert(format!("initial {}", array.name), summary);
        }
        self
    }

    /// The name of the program.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The hash of the program.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The inputs by name.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inputs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A hash of all that: snapshots carry it, so that each proves which question it belongs to.
    pub(crate) fn digest(&self) -> String {
        // Plain strings and numbers always have a JSON form.
        let text = serde_json::to_string(self).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// One sentence for each thing in which `now` differs from this.
    fn differences(&self, now: &Identity) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, then: Option<&String>, now: Option<&String>| {
            if then != now {
                let show =
                    |value: Option<&String>| value.map_or("not given".to_owned(), |v| format!("`{v}`"));
                found.push(format!("{what} was {} and is now {}", show(then), show(now)));
            }
        };
        compare("the program", Some(&self.program), Some(&now.program));
        compare("the hash of the program", Some(&self.hash), Some(&now.hash));
        let [laws_then, laws_now] = [self, now].map(|identity| identity.laws.map(|laws| laws.to_string()));
        compare("the version of the laws", laws_then.as_ref(), laws_now.as_ref());
        let names: BTreeSet<&String> = self.inputs.keys().chain(now.inputs.keys()).collect();
        for name in names {
            compare(&format!("input `{name}`"), self.inputs.get(name), now.inputs.get(name));
        }
        found
    }
}

/// What stands for an array. A checksum finds damage; to tell one question from another takes a hash under which no two
/// arrays are ever found to be the same.
fn summary(dtype: crate::Dtype, shape: &[usize], bytes: &[u8]) -> String {
    format!("{dtype}{shape:?}, hash {}", blake3::hash(bytes).to_hex())
}

/// What is written down once, when a run is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    /// The version of Ebbtide that made the run.
    pub engine: String,
    /// A name that no other run has.
    pub run: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// The command line that created it.
    pub command: String,
    /// What it computes.
    pub identity: Identity,
    /// The schedule that it began with, in its text form.
    pub schedule: String,
    /// The number of steps, if it is known from the beginning.
    pub steps: Option<u64>,
    /// What it may use when it plans anew.
    pub budget: Budget,
    /// Over everything else.
    checksum: String,
}

/// What a run may use when it plans anew after an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// States in memory.
    pub slots: usize,
    /// Steps whose tape may be kept at once.
    pub block: u64,
    /// States on disk.
    pub disk_slots: usize,
    /// The cost of writing or reading a state on disk, in steps.
    pub disk_cost: u32,
}

impl Manifest {
    /// A manifest for a run that begins now in this process.
    pub fn new(identity: Identity, schedule: impl Into<String>, steps: Option<u64>, budget: Budget) -> Self {
        let mut manifest = Self {
            format: FORMAT.to_owned(),
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            run: unique_name(),
            created: now(),
            command: command_line(),
            identity,
            schedule: schedule.into(),
            steps,
            budget,
            checksum: String::new(),
        };
        manifest.checksum = manifest.expected_checksum();
        manifest
    }

    fn expected_checksum(&self) -> String {
        let bare = Self { checksum: String::new(), ..self.clone() };
        // Plain strings and numbers always have a JSON form.
        let text = serde_json::to_string(&bare).unwrap_or_default();
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }

    /// Refuses to continue with this run for a program that is not the one it was made for.
    pub fn check(&self, dir: &Path, identity: &Identity) -> Result<(), Error> {
        if let (Some(then), Some(now)) = (self.identity.laws, identity.laws)
            && then != now
        {
            return Err(Error::OtherLaws { path: dir.to_owned(), then, now, engine: self.engine.clone() });
        }
        let differences = self.identity.differences(identity);
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::Differs { path: dir.to_owned(), differences })
        }
    }

    pub(crate) fn write(&self, fs: &dyn FileSystem, dir: &Path) -> Result<(), Error> {
        let path = dir.join(MANIFEST);
        let text = serde_json::to_vec_pretty(self).map_err(|e| Error::io("write", &path)(e.into()))?;
        let temporary = temporary(&path);
        // A temporary file can stay from a creation that was interrupted.
        let _ = fs.remove(&temporary);
        let mut file = fs.create(&temporary).map_err(Error::io("create", &temporary))?;
        file.write(&text).map_err(Error::io("write", &temporary))?;
        file.sync().map_err(Error::io("sync", &temporary))?;
        fs.rename(&temporary, &path).map_err(Error::io("rename", &temporary))?;
        fs.sync_dir(dir).map_err(Error::io("sync", dir))
    }

    /// Reads the manifest of a run.
    pub fn read(fs: &dyn FileSystem, dir: &Path) -> Result<Self, Error> {
        let path = dir.join(MANIFEST);
        let mut file = fs.open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => missing(fs, dir),
            _ => Error::io("open", &path)(error),
        })?;
        let size = file.size();
        if size > LARGEST_MANIFEST {
            return Err(Error::damaged(&path, format!("it has {size} bytes, more than any manifest")));
        }
        let mut text = zeroed(size as usize)?;
        file.read(&mut text).map_err(Error::io("read", &path))?;
        let other = |format: String| Error::OtherFormat { path: path.clone(), found: format, reads: FORMAT };
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| match format_of(&text) {
            Some(format) if format != FORMAT => other(format),
            _ => Error::damaged(&path, format!("it does not parse: {error}")),
        })?;
        if manifest.checksum != manifest.expected_checksum() {
            return Err(Error::damaged(&path, "its checksum does not match"));
        }
        if manifest.format != FORMAT {
            return Err(other(manifest.format));
        }
        Ok(manifest)
    }
}

/// Why there is no manifest: there never was a run, or one has lost it. The manifest is safe before the journal is made.
fn missing(fs: &dyn FileSystem, dir: &Path) -> Error {
    if fs.open(&dir.join(JOURNAL)).is_err() {
        return Error::NotARun { path: dir.to_owned(), why: format!("it has no {MANIFEST}") };
    }
    let what = format!("it is missing, and there is a {JOURNAL}; put it back, or begin again elsewhere");
    Error::damaged(&dir.join(MANIFEST), what)
}

/// The format of a manifest that a text claims to have, whatever else is in it.
fn format_of(text: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(text).ok()?;
    let format = value.get("format")?.as_str()?;
    format.strip_prefix(FORMATS)?.bytes().all(|byte| byte.is_ascii_digit()).then(|| format.to_owned())
}

/// The command that started this process, as one would type it from anywhere, shortened if it is very long.
pub(crate) fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let quoted = |word: &OsStr| {
        let word = word.to_string_lossy();
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let words: Vec<String> = std::env::args_os().map(|word| quoted(&word)).collect();
    let line = match std::env::current_dir() {
        Ok(dir) => format!("cd {} && {}", quoted(dir.as_os_str()), words.join(" ")),
        Err(_) => words.join(" "),
    };
    match line.char_indices().nth(2000) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
