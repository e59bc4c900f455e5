//! One checkpoint, one `safetensors` file.
//!
//! Files are written and read piece by piece: nothing here takes memory in proportion to the arrays, unless a whole
//! [`Checkpoint`] is asked for.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ebbtide_checkpoint::{
    ALIGNMENT, ArrayInfo, Buffer, Checkpoint, Header, LARGEST_HEADER, Label, Position, zeroed,
};

use crate::fs::{FileSystem, InputFile, OutputFile};
use crate::unique::unique_name;
use crate::{Error, room};

/// Large enough for the disk to run at full speed, small enough to be one request.
const PIECE: usize = 8 << 20;
/// What passes through memory when a file is only looked at.
const GLANCE: usize = 1 << 20;

/// A snapshot that is being written, array by array.
pub struct SnapshotWriter {
    file: Box<dyn OutputFile>,
    path: PathBuf,
    /// Bytes that wait to be written as whole blocks.
    waiting: Buffer,
    capacity: usize,
    /// How many bytes of arrays are still to come.
    left: u64,
    length: u64,
}

impl SnapshotWriter {
    /// Begins a new file. `arrays` must be what [`write`](Self::write) will be given, in this order.
    ///
    /// A buffer of `buffer` bytes, at least a block, is all the memory that writing takes.
    pub(crate) fn create(
        fs: &dyn FileSystem,
        path: &Path,
        header: &Header,
        buffer: usize,
    ) -> Result<Self, Error> {
        let text = header.encode().map_err(Error::header(path))?;
        let mut file = create(fs, path)?;
        for piece in text.as_slice().chunks(PIECE) {
            file.write(piece).map_err(Error::io("write", path))?;
        }
        let capacity = buffer.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let mut waiting = Buffer::default();
        waiting.reserve(capacity)?;
        let left = header.data_bytes();
        let length = text.len() as u64 + left;
        Ok(Self { file, path: path.to_owned(), waiting, capacity, left, length })
    }

    /// Writes the next bytes of the arrays.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            Error::damaged(&self.path, "more was to be written into it than its header says")
        })?;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.capacity - self.waiting.len()));
            self.waiting.extend(now.len())?.copy_from_slice(now);
            bytes = later;
            if self.waiting.len() == self.capacity {
                self.file.write(self.waiting.as_slice()).map_err(Error::io("write", &self.path))?;
                self.waiting.clear();
            }
        }
        Ok(())
    }

    /// The file, complete, but not synced.
    pub(crate) fn finish(mut self) -> Result<Box<dyn OutputFile>, Error> {
        if self.left > 0 {
            return Err(Error::damaged(&self.path, "less was written into it than its header says"));
        }
        let io = || Error::io("write", &self.path);
        if !self.waiting.is_empty() {
            // Whole blocks, then cut: what a disk likes best.
            self.file.write(self.waiting.whole_blocks()).map_err(io())?;
            if !self.waiting.len().is_multiple_of(ALIGNMENT) {
                self.file.set_len(self.length).map_err(io())?;
            }
        }
        Ok(self.file)
    }
}

/// Makes a new file under a temporary name. One that is there was left by an attempt that failed, or by a process that was
/// interrupted: nothing speaks of it.
fn create(fs: &dyn FileSystem, path: &Path) -> Result<Box<dyn OutputFile>, Error> {
    match fs.create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs.remove(path).map_err(Error::io("replace", path))?;
            fs.create(path).map_err(Error::io("create", path))
        }
        other => other.map_err(Error::io("create", path)),
    }
}

/// Writes a snapshot into a new file. The file is complete, but not synced, when this returns.
pub(crate) fn write(
    fs: &dyn FileSystem,
    path: &Path,
    label: &Label,
    checkpoint: &Checkpoint,
) -> Result<Box<dyn OutputFile>, Error> {
    let text = checkpoint.header(label).encode().map_err(Error::header(path))?;
    let mut file = create(fs, path)?;
    let data = checkpoint.state.data();
    let pieces = text.as_slice().chunks(PIECE).chain(data.whole_blocks().chunks(PIECE));
    for piece in pieces {
        file.write(piece).map_err(Error::io("write", path))?;
    }
    if !data.len().is_multiple_of(ALIGNMENT) {
        file.set_len((text.len() + data.len()) as u64).map_err(Error::io("write", path))?;
    }
    Ok(file)
}

/// Writes one checkpoint into one file and returns when it would survive a power cut.
///
/// A file that has this name already is replaced in one move, when its successor is safe. Until then that has a hidden
/// name of its own (`.ebbtide-*.tmp`) in the same directory; only a process that is killed leaves it there.
pub fn write_snapshot(
    fs: &dyn FileSystem,
    path: &Path,
    label: &Label,
    checkpoint: &Checkpoint,
) -> Result<(), Error> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = dir.join(format!(".ebbtide-{}.tmp", unique_name()));
    let written = write(fs, &temporary, label, checkpoint)
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

/// A snapshot file whose header has been read and is sound, and whose arrays can be read one after the other.
pub struct SnapshotReader {
    file: Box<dyn InputFile>,
    path: PathBuf,
    header: Header,
    /// The array that is being read, how much of it has been, and the checksum so far.
    at: usize,
    done: usize,
    sum: crc32fast::Hasher,
}

impl SnapshotReader {
    /// Opens a file and reads its header. Every length is checked against the size of the file before anything is
    /// allocated for it.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<Self, Error> {
        let damaged = |what: String| Error::damaged(path, what);
        let mut file = fs.open(path).map_err(Error::io("open", path))?;
        let size = file.size();
        if size < 8 {
            return Err(damaged(format!("it has only {size} bytes")));
        }
        let mut length = [0; 8];
        file.read(&mut length).map_err(Error::io("read", path))?;
        let header_len = u64::from_le_bytes(length);
        if header_len > LARGEST_HEADER || header_len > size - 8 {
            return Err(damaged(format!("its header claims {header_len} bytes, the file has {size}")));
        }
        let mut text = zeroed(header_len as usize)?;
        file.read(&mut text).map_err(Error::io("read", path))?;
        let header = Header::decode(&text, size - 8 - header_len).map_err(Error::header(path))?;
        let path = path.to_owned();
        Ok(Self { file, path, header, at: 0, done: 0, sum: crc32fast::Hasher::new() })
    }

    /// What the file says about itself.
    pub fn label(&self) -> &Label {
        &self.header.label
    }

    /// The position of the checkpoint.
    pub fn position(&self) -> &Position {
        &self.header.position
    }

    /// The arrays, in the order in which they are read.
    pub fn arrays(&self) -> &[ArrayInfo] {
        &self.header.arrays
    }

    /// The bytes of all arrays together.
    pub fn bytes(&self) -> u64 {
        self.header.data_bytes()
    }

    /// An error that names this file.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::damaged(&self.path, what)
    }

    /// The array that comes next.
    pub fn next_array(&self) -> Option<&ArrayInfo> {
        self.header.arrays.get(self.at)
    }

    /// Goes past the array that comes next, if it has no bytes.
    pub fn pass_empty(&mut self) -> Result<(), Error> {
        match self.next_array() {
            Some(array) if array.bytes == 0 => self.end_array(),
            _ => Ok(()),
        }
    }

    /// Reads the next part of the array that comes next. With its last byte its checksum is compared.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(array) = self.header.arrays.get(self.at) else {
            return Err(self.damaged("it has fewer arrays than were asked for"));
        };
        if bytes.len() > array.bytes - self.done {
            return Err(self.damaged(format!("array `{}` is shorter than was asked for", array.name)));
        }
        for piece in bytes.chunks_mut(PIECE) {
            self.file.read(piece).map_err(Error::io("read", &self.path))?;
            self.sum.update(piece);
        }
        self.done += bytes.len();
        if self.done == array.bytes { self.end_array() } else { Ok(()) }
    }

    fn end_array(&mut self) -> Result<(), Error> {
        let sum = std::mem::take(&mut self.sum).finalize();
        match self.next_array() {
            Some(array) if array.checksum != sum => {
                Err(self.damaged(format!("the checksum of array `{}` does not match", array.name)))
            }
            _ => {
                (self.at, self.done) = (self.at + 1, 0);
                Ok(())
            }
        }
    }

    /// Reads so many bytes of the array that comes next.
    pub fn read_vec(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        if self.next_array().map_or(0, |array| array.bytes - self.done) < count {
            return Err(self.damaged("it is shorter than was asked for"));
        }
        let mut bytes = zeroed(count)?;
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads all that has not been read and compares every checksum.
    pub fn verify(mut self) -> Result<Label, Error> {
        let mut piece = zeroed(GLANCE.min(usize::try_from(self.bytes()).unwrap_or(GLANCE)))?;
        while let Some(array) = self.next_array() {
            let count = piece.len().min(array.bytes - self.done);
            self.read(&mut piece[..count])?;
            self.pass_empty()?;
        }
        Ok(self.header.label)
    }

    /// Reads the whole file.
    fn read_all(mut self, Checkpoint { position, state }: &mut Checkpoint) -> Result<Label, Error> {
        let bytes = self.bytes();
        if bytes > state.capacity() as u64 {
            room::check(&self.path, bytes)?;
        }
        state.reserve(bytes as usize)?;
        for array in &self.header.arrays {
            state
                .allot(&array.name, array.dtype, &array.shape)
                .map_err(|error| self.damaged(error.to_string()))?;
        }
        let mut rest = state.data_mut();
        while let Some(array) = self.next_array() {
            let (first, later) = rest.split_at_mut(array.bytes);
            let empty = first.is_empty();
            self.read(first)?;
            if empty {
                self.pass_empty()?;
            }
            rest = later;
        }
        *position = self.header.position;
        Ok(self.header.label)
    }
}

/// Reads a snapshot file into `checkpoint` and returns what it says about itself.
///
/// Every length is checked against the size of the file and the memory that is free before anything is allocated for it,
/// and every checksum against the content. `checkpoint` is empty after an error.
pub fn read_snapshot(fs: &dyn FileSystem, path: &Path, checkpoint: &mut Checkpoint) -> Result<Label, Error> {
    checkpoint.clear();
    let result = SnapshotReader::open(fs, path).and_then(|reader| reader.read_all(checkpoint));
    if result.is_err() {
        checkpoint.clear();
    }
    result
}

/// The name that a file of a run has until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}
