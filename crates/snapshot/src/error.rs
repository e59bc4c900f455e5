use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with states, the places where they live and the directories of durable runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A state, a position, or the memory for them.
    #[error(transparent)]
    Checkpoint(#[from] ebbtide_checkpoint::Error),
    /// The operating system refused.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: `write`, `rename`.
        doing: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not say what was written into it.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A run or a snapshot was written in a format that this version does not read.
    #[error(
        "{} was written by another version of Ebbtide: its format is `{found}`, this version reads `{reads}`; \
         continue with the version that wrote it, or begin again in an empty directory",
        path.display()
    )]
    OtherFormat {
        /// The manifest of the run, or the snapshot.
        path: PathBuf,
        /// The format that it has.
        found: String,
        /// The format that this version reads.
        reads: &'static str,
    },
    /// A slot was loaded, or committed to, that holds nothing.
    #[error("slot {slot} holds no state")]
    EmptySlot {
        /// The index of the slot.
        slot: usize,
    },
    /// A slot index is out of range.
    #[error("there is no slot {slot}: this place has {slots}")]
    NoSuchSlot {
        /// The index of the slot.
        slot: usize,
        /// How many there are.
        slots: usize,
    },
    /// Another process owns the run, or another part of this one does.
    #[error("{} is in use by another process or another part of this one; wait for it or end it", path.display())]
    Busy {
        /// The directory of the run.
        path: PathBuf,
    },
    /// A directory is not, or not yet, the directory of a run.
    #[error("{} is not a durable run: {why}", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A new run was to be made where there is something already.
    #[error("{} is not empty: there is `{name}` in it; a new run needs an empty directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// The name of something in it.
        name: String,
    },
    /// A run belongs to something else than what wants to continue with it.
    #[error("{} belongs to another run: {}", path.display(), differences.join("; "))]
    Differs {
        /// The directory of the run.
        path: PathBuf,
        /// One sentence for each thing that differs.
        differences: Vec<String>,
    },
    /// A run was made under other laws of the language.
    #[error(
        "{} was made under version {then} of the laws by Ebbtide {engine}, and this is version {now}: continue it with \
         Ebbtide {engine}, or begin again in an empty directory",
        path.display()
    )]
    OtherLaws {
        /// The directory of the run, or the file.
        path: PathBuf,
        /// The version that it was made under.
        then: u32,
        /// The version that this engine has.
        now: u32,
        /// The version of Ebbtide that made it, and that continues it.
        engine: String,
    },
    /// A file holds more than there is memory for.
    #[error(
        "{} holds {}, and {} of memory are free: read it where there is more",
        path.display(), size(*bytes), size(*free)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it holds.
        bytes: u64,
        /// What is free.
        free: u64,
    },
    /// The thread that writes or reads in the background is gone.
    #[error("the background thread that {doing} has died")]
    WorkerDied {
        /// What it did: `writes snapshots`.
        doing: &'static str,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { doing, path, source }
    }

    /// What is wrong with the header of a file.
    pub(crate) fn header(path: &Path) -> impl FnOnce(ebbtide_checkpoint::Error) -> Error {
        move |error| match error {
            ebbtide_checkpoint::Error::OtherFormat { found, reads } => {
                Error::OtherFormat { path: path.to_owned(), found, reads }
            }
            other => Error::damaged(path, other.to_string()),
        }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), what: what.into() }
    }
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", units[unit]) }
}
