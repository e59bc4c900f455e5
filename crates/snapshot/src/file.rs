//! One state, one `safetensors` file.
//!
//! The file starts with the length of its header (8 bytes), the header (JSON) and then the arrays, one after
//! the other. The header is filled up with spaces so that the arrays start at a multiple of 4 KiB. Besides
//! the arrays it holds text notes (`__metadata__`): what the file is, and checksums of each array and of
//! the header itself, so that no flipped bit passes for a number.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::buffer::{ALIGNMENT, Buffer};
use crate::fs::{FileSystem, OutputFile};
use crate::unique::unique_name;
use crate::{Dtype, Error, Position, State};

const FORMAT: &str = "ebbtide snapshot 1";
/// What a header may take at most. Millions of arrays fit; a hostile length does not.
const LARGEST_HEADER: u64 = 100_000_000;
/// Large enough for the disk to run at full speed, small enough to be one request.
const PIECE: usize = 8 << 20;

/// What a snapshot file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A working state, from which the run can go forward.
    State,
    /// An adjoint, with which the run can go on reversing.
    Adjoint,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        [Kind::State, Kind::Adjoint].into_iter().find(|kind| kind.to_string() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::State => "state",
            Kind::Adjoint => "adjoint",
        })
    }
}

/// What a snapshot file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it holds.
    pub kind: Kind,
    /// The step that the state stands before, or down to which the adjoint has come.
    pub step: u64,
    /// The run that it belongs to; empty if none.
    pub run: String,
    /// The hash of the program; empty if none.
    pub program: String,
}

/// Writes a snapshot into a new file. The file is complete, but not synced, when this returns.
pub(crate) fn write(
    fs: &dyn FileSystem,
    path: &Path,
    label: &Label,
    state: &State,
) -> Result<Box<dyn OutputFile>, Error> {
    let header = header(label, state).map_err(|what| Error::damaged(path, what))?;
    let mut file = fs.create(path).map_err(Error::io("create", path))?;
    let data = state.data();
    // Whole blocks, then cut: what a disk likes best.
    let pieces = header.as_slice().chunks(PIECE).chain(data.whole_blocks().chunks(PIECE));
    for piece in pieces {
        file.write(piece).map_err(Error::io("write", path))?;
    }
    if !data.len().is_multiple_of(ALIGNMENT) {
        file.set_len((header.len() + data.len()) as u64).map_err(Error::io("write", path))?;
    }
    Ok(file)
}

/// Writes one state into one file and returns when it would survive a power cut.
///
/// A file that has this name already is replaced in one move, when its successor is safe. Until then that has a hidden
/// name of its own (`.ebbtide-*.tmp`) in the same directory; only a process that is killed leaves it there.
pub fn write_snapshot(fs: &dyn FileSystem, path: &Path, label: &Label, state: &State) -> Result<(), Error> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = dir.join(format!(".ebbtide-{}.tmp", unique_name()));
    let written = write(fs, &temporary, label, state)
        .and_then(|mut file| file.sync().map_err(Error::io("sync", &temporary)))
        .and_then(|()| fs.rename(&temporary, path).map_err(Error::io("write", path)));
    if let Err(error) = written {
        let _ = fs.remove(&temporary);
        // The name that the caller knows.
        return Err(match error {
            Error::Io { doing, source, .. } => Error::io(doing, path)(source),
            other => other,
        });
    }
    fs.sync_dir(dir).map_err(Error::io("sync", dir))
}

/// Reads a snapshot file into `state` and returns what it says about itself.
///
/// Every length is checked against the size of the file before anything is allocated for it, and every
/// checksum against the content. `state` is empty after an error.
pub fn read_snapshot(fs: &dyn FileSystem, path: &Path, state: &mut State) -> Result<Label, Error> {
    state.clear();
    let result = read(fs, path, state);
    if result.is_err() {
        state.clear();
    }
    result
}

fn read(fs: &dyn FileSystem, path: &Path, state: &mut State) -> Result<Label, Error> {
    let damaged = |what: String| Error::damaged(path, what);
    let mut file = fs.open(path).map_err(Error::io("open", path))?;
    let size = file.size();
    let mut length = [0; 8];
    if size < 8 {
        return Err(damaged(format!("it has only {size} bytes")));
    }
    file.read(&mut length).map_err(Error::io("read", path))?;
    let header_len = u64::from_le_bytes(length);
    if header_len > LARGEST_HEADER || header_len > size - 8 {
        return Err(damaged(format!("its header claims {header_len} bytes, the file has {size}")));
    }
    let mut header_text = vec![0; header_len as usize];
    file.read(&mut header_text).map_err(Error::io("read", path))?;
    let metadata: safetensors::tensor::Metadata = serde_json::from_slice(&header_text)
        .map_err(|error| damaged(format!("its header does not parse: {error}")))?;

    let promised = size - 8 - header_len;
    if metadata.data_len() as u64 != promised {
        let claimed = metadata.data_len();
        return Err(damaged(format!("its arrays claim {claimed} bytes, the file has {promised}")));
    }
    state.reserve(promised as usize);
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else { continue };
        let dtype = Dtype::from_file(info.dtype)
            .ok_or_else(|| damaged(format!("array `{name}` has elements of type {:?}", info.dtype)))?;
        state.allot(&name, dtype, &info.shape).map_err(|error| damaged(error.to_string()))?;
    }
    for piece in state.data_mut().chunks_mut(PIECE) {
        file.read(piece).map_err(Error::io("read", path))?;
    }
    let empty = Default::default();
    let notes = metadata.metadata().as_ref().unwrap_or(&empty);
    let note = |key: &str| notes.get(key).map(String::as_str);
    check(note, state).map_err(damaged)
}

/// Compares the notes of a header with the arrays that were read.
fn check<'a>(note: impl Fn(&str) -> Option<&'a str>, state: &mut State) -> Result<Label, String> {
    let missing = |key: &str| format!("its header has no `{key}`");
    match note("format") {
        Some(FORMAT) => {}
        Some(other) => return Err(format!("its format is `{other}`, this version reads `{FORMAT}`")),
        None => return Err("it is not a snapshot: its header has no `format`".to_owned()),
    }
    for array in state.arrays() {
        let key = format!("crc32.{}", array.name);
        let written = note(&key).ok_or_else(|| missing(&key))?;
        if written != crc_text(array.bytes) {
            return Err(format!("the checksum of array `{}` does not match", array.name));
        }
    }
    let position = note("position").map(str::parse::<Position>).transpose().map_err(|e| e.to_string())?;
    state.set_position(position);
    let label = Label {
        kind: note("kind").and_then(Kind::parse).ok_or_else(|| missing("kind"))?,
        step: note("step").and_then(|text| text.parse().ok()).ok_or_else(|| missing("step"))?,
        run: note("run").unwrap_or_default().to_owned(),
        program: note("program").unwrap_or_default().to_owned(),
    };
    // Writing the same header again is the simplest way to see that not a bit of it has changed.
    let (_, checksum) = notes_and_checksum(&label, state)?;
    if note("checksum") != Some(&checksum) {
        return Err("the checksum of its header does not match".to_owned());
    }
    Ok(label)
}

fn crc_text(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// The header as a JSON object without its own checksum, and that checksum.
fn notes_and_checksum(label: &Label, state: &State) -> Result<(Map<String, Value>, String), String> {
    let mut notes = BTreeMap::from([
        ("format".to_owned(), FORMAT.to_owned()),
        ("kind".to_owned(), label.kind.to_string()),
        ("step".to_owned(), label.step.to_string()),
        ("run".to_owned(), label.run.clone()),
        ("program".to_owned(), label.program.clone()),
    ]);
    if let Some(position) = state.position() {
        notes.insert("position".to_owned(), position.to_string());
    }
    let mut header = Map::new();
    let mut offset = 0;
    for array in state.arrays() {
        notes.insert(format!("crc32.{}", array.name), crc_text(array.bytes));
        let end = offset + array.bytes.len();
        let dtype = array.dtype.in_file().to_string();
        let info = json!({ "dtype": dtype, "shape": array.shape, "data_offsets": [offset, end] });
        header.insert(array.name.to_owned(), info);
        offset = end;
    }
    header.insert("__metadata__".to_owned(), json!(notes));
    let text = serde_json::to_string(&header).map_err(|error| error.to_string())?;
    Ok((header, crc_text(text.as_bytes())))
}

/// Length, header and padding: everything that stands before the arrays.
fn header(label: &Label, state: &State) -> Result<Buffer, String> {
    let (mut header, checksum) = notes_and_checksum(label, state)?;
    if let Some(Value::Object(notes)) = header.get_mut("__metadata__") {
        notes.insert("checksum".to_owned(), Value::String(checksum));
    }
    let text = serde_json::to_string(&header).map_err(|error| error.to_string())?;
    let total = (8 + text.len()).next_multiple_of(ALIGNMENT);
    if (total - 8) as u64 > LARGEST_HEADER {
        return Err("its header would be too large: there are too many arrays".to_owned());
    }
    let mut buffer = Buffer::default();
    let bytes = buffer.extend(total);
    bytes[..8].copy_from_slice(&((total - 8) as u64).to_le_bytes());
    bytes[8..8 + text.len()].copy_from_slice(text.as_bytes());
    bytes[8 + text.len()..].fill(b' ');
    Ok(buffer)
}

/// The name that a file of a run has until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}
