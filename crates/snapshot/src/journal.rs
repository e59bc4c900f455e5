//! What a durable run has done, as lines at the end of a file.
//!
//! A line is a checksum, a space and one JSON object: `1c291ca3 {"n":4,"at":…,"did":"stored",…}`. Lines are only
//! ever added, each after the file that it speaks of is safe on disk. A line that was torn by a crash or damaged
//! later fails its checksum and is passed over: every line is a statement of its own, and whatever it names is
//! verified before it is used, so a lost line costs work and never truth.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ebbtide_checkpoint::zeroed;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::fs::{FileSystem, OutputFile};

/// The longest line that can be a record.
const LONGEST_LINE: usize = 1 << 16;
/// A journal beyond this size was not written by us: it has room for millions of lines.
const LARGEST_JOURNAL: u64 = 256 << 20;
/// How much of a journal is in memory at one time.
const PIECE: usize = 1 << 18;
/// How many damaged lines are spoken of one by one.
const MOST_SENTENCES: usize = 20;

/// The number of a snapshot file within its run. Files are never written twice, so a number is one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileNumber(pub u64);

/// One thing that a run has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Record {
    /// The run was made: the first line of every journal.
    Begun,
    /// A process took the run up.
    Opened {
        /// The command line of that process.
        command: String,
    },
    /// A state is safe on disk.
    Stored {
        /// The step that the state stands before.
        step: u64,
        /// The file that holds it.
        file: FileNumber,
        /// The file that is not needed any more because of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        supersedes: Option<FileNumber>,
    },
    /// A state is not needed any more.
    Dropped {
        /// The file that held it.
        file: FileNumber,
    },
    /// Of `steps` steps everything down to `step` is reversed, and the adjoint is safe on disk.
    Reversed {
        /// The step.
        step: u64,
        /// The number of steps of the run.
        steps: u64,
        /// The file that holds the adjoint.
        file: FileNumber,
        /// The file that is not needed any more because of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        supersedes: Option<FileNumber>,
    },
    /// The gradient is complete.
    Finished {
        /// The number of steps of the run.
        steps: u64,
        /// The file that holds the adjoint.
        file: FileNumber,
    },
}

impl Record {
    /// Whether an adjoint became durable, so that states above it are not needed any more.
    pub(crate) fn moves_the_frontier(&self) -> bool {
        matches!(self, Record::Reversed { .. } | Record::Finished { .. })
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    n: u64,
    at: u64,
    #[serde(flatten)]
    record: Record,
}

/// What was read from a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The good records in order, each with the time of its writing in milliseconds since 1970.
    pub records: Vec<(u64, Record)>,
    /// One sentence for each line that had to be passed over, and for lines that are missing; of very many damaged lines
    /// the last sentence tells the number.
    pub damage: Vec<String>,
    next: u64,
    ends_in_newline: bool,
}

/// Reads a journal. A journal that is missing is empty.
pub fn read_journal(fs: &dyn FileSystem, path: &Path) -> Result<History, Error> {
    let mut history = History { ends_in_newline: true, ..History::default() };
    let mut file = match fs.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(history),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let size = file.size();
    if size > LARGEST_JOURNAL {
        let what = format!(
            "it has {size} bytes, more than any journal; set it aside: the run continues from the snapshots that it has"
        );
        return Err(Error::damaged(path, what));
    }
    let mut piece = zeroed(PIECE.min(size as usize))?;
    let (mut left, mut offset) = (size, 0);
    let mut lines = Lines { history, offset: 0, line: Vec::new(), skipped: 0, gap: None };
    while left > 0 {
        let count = piece.len().min(usize::try_from(left).unwrap_or(piece.len()));
        file.read(&mut piece[..count]).map_err(Error::io("read", path))?;
        for part in piece[..count].split_inclusive(|&byte| byte == b'\n') {
            lines.take(part, offset);
            offset += part.len() as u64;
        }
        left -= count as u64;
    }
    history = lines.end();
    Ok(history)
}

/// Lines that come in parts.
struct Lines {
    history: History,
    /// Where the line that is being put together begins.
    offset: u64,
    line: Vec<u8>,
    /// Damaged lines that are not spoken of one by one.
    skipped: u64,
    /// Lines that are missing before a sound one.
    gap: Option<(u64, u64)>,
}

impl Lines {
    fn take(&mut self, part: &[u8], offset: u64) {
        if self.line.is_empty() {
            self.offset = offset;
        }
        let whole = part.strip_suffix(b"\n");
        // What is longer than any line is not kept, only that it is.
        let room = (LONGEST_LINE + 1).saturating_sub(self.line.len());
        let bytes = whole.unwrap_or(part);
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.history.ends_in_newline = whole.is_some();
        if whole.is_some() {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.line.is_empty() {
            match parse(&self.line) {
                Ok(line) => {
                    if line.n > self.history.next {
                        self.gap.get_or_insert((self.history.next, line.n - 1));
                    }
                    self.history.next = self.history.next.max(line.n.saturating_add(1));
                    self.history.records.push((line.at, line.record));
                }
                Err(_) if self.history.damage.len() >= MOST_SENTENCES => self.skipped += 1,
                Err(why) => {
                    self.history.damage.push(format!("the journal line at byte {} {why}", self.offset));
                }
            }
        }
        self.line.clear();
    }

    fn end(mut self) -> History {
        self.close();
        if self.skipped > 0 {
            self.history.damage.push(format!("the journal has {} more damaged lines", self.skipped));
        }
        // Where damaged lines are told of, they are what is missing.
        if let (Some((from, to)), true) = (self.gap, self.history.damage.is_empty()) {
            self.history.damage.push(format!("the journal has lost its lines {from} to {to}"));
        }
        self.history
    }
}

fn parse(line: &[u8]) -> Result<Line, &'static str> {
    if line.len() > LONGEST_LINE {
        return Err("is too long");
    }
    let (checksum, json) = line.split_at_checked(9).ok_or("is torn")?;
    let checksum = std::str::from_utf8(checksum).ok().and_then(|text| text.strip_suffix(' '));
    if checksum != Some(&format!("{:08x}", crc32fast::hash(json))) {
        return Err("is torn or damaged: its checksum does not match");
    }
    serde_json::from_slice(json).map_err(|_| "is not a record of this version")
}

/// The end of a journal, to write at.
pub(crate) struct Journal {
    path: PathBuf,
    file: Box<dyn OutputFile>,
    next: u64,
    /// Whether the last line may be incomplete, so that the next one must start afresh.
    torn: bool,
}

impl Journal {
    /// Opens a journal to continue after what was read from it.
    pub(crate) fn open(fs: &Arc<dyn FileSystem>, path: &Path, history: &History) -> Result<Self, Error> {
        let file = fs.append(path).map_err(Error::io("open", path))?;
        Ok(Self { path: path.to_owned(), file, next: history.next, torn: !history.ends_in_newline })
    }

    /// Adds records and returns when they are safe.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<(), Error> {
        let mut text = if self.torn { vec![b'\n'] } else { Vec::new() };
        let mut next = self.next;
        for record in records {
            let line = Line { n: next, at: now(), record: record.clone() };
            next += 1;
            let json =
                serde_json::to_vec(&line).map_err(|error| Error::io("write", &self.path)(error.into()))?;
            text.extend_from_slice(format!("{:08x} ", crc32fast::hash(&json)).as_bytes());
            text.extend_from_slice(&json);
            text.push(b'\n');
        }
        // Until the write is known to be whole, the next one must not trust the end of the file.
        self.torn = true;
        self.file.write(&text).map_err(Error::io("write", &self.path))?;
        self.file.sync().map_err(Error::io("sync", &self.path))?;
        // Lines that failed are written again under the same numbers: a gap in these means that lines were lost.
        (self.torn, self.next) = (false, next);
        Ok(())
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
