//! The file-system seam: what this crate asks of a disk, so that tests can stand in for a failing one.

mod kill;

use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use ebbtide_checkpoint::ALIGNMENT;
use kill::{Operation, at, at_write};

/// The operations that snapshots and runs need of a file system.
///
/// No operation follows a symbolic link in the last part of a path.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Makes a directory and its parents; one that exists is fine.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes a directory in one that exists; a directory that has this name already is an error.
    fn create_new_dir(&self, dir: &Path) -> io::Result<()>;
    /// Makes a new file; one that exists is an error.
    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>>;
    /// Opens a file to write at its end, and makes it if it is missing.
    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>>;
    /// Opens a regular file to read it from its beginning.
    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>>;
    /// Gives a file another name in one move, over a file that may have that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, file: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Returns when the names in `dir` would survive a power cut.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// What is in a directory, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Takes the lock that `file` stands for until the guard is dropped, and makes the file if it is missing; `None` if
    /// another has the lock.
    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>>;
}

/// What holds a lock.
pub type LockGuard = Box<dyn Send + Sync>;

/// A file being written.
pub trait OutputFile: Send {
    /// Writes all of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file, or fills it up with zeros, to this length.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Returns when the content would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file being read.
pub trait InputFile: Send {
    /// Its length when it was opened.
    fn size(&self) -> u64;
    /// Fills `bytes` with what comes next.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()>;
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name within the directory.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
    /// Its size in bytes, if it is a file.
    pub bytes: u64,
}

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, a device, a socket.
    Other,
}

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disks;

impl FileSystem for Disks {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        at(Operation::Create, || std::fs::create_dir_all(dir))
    }

    fn create_new_dir(&self, dir: &Path) -> io::Result<()> {
        at(Operation::Create, || std::fs::create_dir(dir))
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = at(Operation::Create, || options().write(true).create_new(true).open(file))?;
        Ok(Box::new(NewFile { file, direct: false, able: true }))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = at(Operation::Create, || options().append(true).create(true).open(file))?;
        Ok(Box::new(Appended(regular(file)?)))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>> {
        Ok(Box::new(regular(options().read(true).open(file)?)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        at(Operation::Rename, || std::fs::rename(from, to))
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        at(Operation::Remove, || std::fs::remove_file(file))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        at(Operation::Remove, || std::fs::remove_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Other systems keep names without being asked, and cannot open a directory as a file.
        at(Operation::SyncDir, || if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        std::fs::read_dir(dir)?
            .map(|entry| {
                let entry = entry?;
                let metadata = entry.path().symlink_metadata()?;
                let kind = match metadata.file_type() {
                    kind if kind.is_file() => EntryKind::File,
                    kind if kind.is_dir() => EntryKind::Directory,
                    _ => EntryKind::Other,
                };
                Ok(Entry { name: entry.file_name(), kind, bytes: metadata.len() })
            })
            .collect()
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let file = regular(options().append(true).create(true).open(file)?)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(Locked(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A locked file. To close it is not enough: a process that another thread is about to start has it open too, until it
/// becomes another program.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // What cannot be unlocked is closed all the same.
        let _ = self.0.unlock();
    }
}

/// Options under which opening a symbolic link fails and opening a pipe does not hang.
fn options() -> OpenOptions {
    #[cfg_attr(not(unix), allow(unused_mut))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits() as i32);
    }
    options
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// A new file. Whole aligned blocks go past the page cache, where the system can do that: it is two to three times
/// as fast as filling the cache and waiting for it to be emptied, and leaves the cache to others. Small pieces do not:
/// there the wait for the disk is all that counts, and a file that is soon removed may never get there.
struct NewFile {
    file: File,
    /// Do writes go past the page cache now, and could they?
    direct: bool,
    able: bool,
}

/// Pieces from here on are worth a way past the page cache.
const LARGE: usize = 256 << 10;

impl NewFile {
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let aligned = |bytes: &[u8]| (bytes.len() | bytes.as_ptr().addr()).is_multiple_of(ALIGNMENT);
        if self.able && !self.direct && bytes.len() >= LARGE && aligned(bytes) {
            self.able = set_direct(&self.file, true);
            self.direct = self.able;
        }
        while self.direct && !bytes.is_empty() && aligned(bytes) {
            match Write::write(&mut self.file, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some file systems say only now that they cannot.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.able = false;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if self.direct {
            self.direct = set_direct(&self.file, false);
        }
        self.file.write_all(bytes)
    }
}

impl OutputFile for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        at_write(Operation::Write, bytes, |bytes| self.write_all(bytes))
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        at(Operation::Write, || self.file.set_len(len))
    }

    fn sync(&mut self) -> io::Result<()> {
        at(Operation::Sync, || self.file.sync_all())
    }
}

/// Asks for writes past the page cache, or no longer; whether they are on.
#[cfg(target_os = "linux")]
fn set_direct(file: &File, on: bool) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let Ok(mut flags) = fcntl_getfl(file) else { return false };
    flags.set(OFlags::DIRECT, on);
    fcntl_setfl(file, flags).is_ok() && on
}

#[cfg(not(target_os = "linux"))]
fn set_direct(_file: &File, _on: bool) -> bool {
    false
}

/// A file that is written at its end.
struct Appended(File);

impl OutputFile for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        at_write(Operation::Commit, bytes, |bytes| self.0.write_all(bytes))
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        at(Operation::Write, || self.0.set_len(len))
    }

    fn sync(&mut self) -> io::Result<()> {
        at(Operation::Sync, || self.0.sync_all())
    }
}

impl InputFile for File {
    fn size(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.read_exact(bytes)
    }
}
