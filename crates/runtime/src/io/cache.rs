//! Compiled code on disk: content-addressed, checksummed, written atomically, private to the user.
//!
//! An entry is a file `KEY.so` or `KEY.cubin` and a seal `KEY.seal` that binds its bytes to its name. The key is a hash
//! over everything that the file depends on: the text, compiler, flags, processor, the version of the laws. An entry whose
//! seal does not fit, or that another user could have written, is not trusted: it is built again.
//!
//! The folder may hold other things: only files and folders whose names are made here are counted or removed, and
//! the permissions of a folder that was there are left as they are.

mod owner;
mod seal;
#[cfg(test)]
mod tests;
mod workplace;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use owner::{create_private, is_own, others_can_write};
use seal::KEY_DIGITS;
use workplace::{Workplace, abandoned, bytes_in, is_temporary, remove_abandoned};

/// Began the names of files that were being written, in earlier versions.
const WRITING: &str = ".ebbtide-write-";

/// The most bytes that the cache keeps; the oldest entries go first.
const MOST_BYTES: u64 = 512 << 20;

/// A directory of compiled code.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// Was an entry there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was, and it was sound.
    Hit,
    /// It was built now.
    Built,
}

/// What kind of code an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shared library of the system.
    Library,
    /// Machine code of a GPU.
    Cubin,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Library, Kind::Cubin];

    fn extension(self) -> &'static str {
        match self {
            Kind::Library => "so",
            Kind::Cubin => "cubin",
        }
    }
}

/// What the cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of libraries.
    pub entries: u64,
    /// Their size.
    pub bytes: u64,
    /// The number of folders in which processes that are gone were building.
    pub abandoned: u64,
    /// Their size.
    pub abandoned_bytes: u64,
}

impl Cache {
    /// The cache of this user: `EBBTIDE_CACHE`, or a folder in the user's cache directory.
    pub fn of_user() -> Cache {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let base = || {
            std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute()).or_else(home)
        };
        let folder = std::env::var_os("EBBTIDE_CACHE")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
            .or_else(|| base().map(|base| base.join("ebbtide")))
            .unwrap_or_else(|| std::env::temp_dir().join("ebbtide-cache"));
        Cache::at(folder)
    }

    /// A cache in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), limit: MOST_BYTES }
    }

    /// The same cache, limited to this number of bytes.
    pub fn limit(mut self, bytes: u64) -> Cache {
        self.limit = bytes;
        self
    }

    /// Where it lives.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The entry that depends on `parts` alone, from the cache or built now; `build` is given a folder to work in.
    pub fn entry(
        &self,
        kind: Kind,
        parts: &[&str],
        build: impl FnOnce(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<(PathBuf, Found), String> {
        let (file, seal) = self.files(kind, parts);
        self.prepare()?;
        if self.is_sound(&file, &seal) {
            return Ok((file, Found::Hit));
        }
        let work = self.workplace()?;
        let bytes = build(work.path())?;
        // The file first: a seal without its file, or with another one, does not fit.
        put(work.path(), &file, &bytes)?;
        put(work.path(), &seal, seal::seal(&name_of(&file), &bytes).as_bytes())?;
        self.trim();
        Ok((file, Found::Built))
    }

    /// Is the entry there that depends on `parts` alone?
    pub fn has(&self, kind: Kind, parts: &[&str]) -> bool {
        let (file, seal) = self.files(kind, parts);
        file.exists() && self.prepare().is_ok() && self.is_sound(&file, &seal)
    }

    /// The file of an entry, and its seal.
    fn files(&self, kind: Kind, parts: &[&str]) -> (PathBuf, PathBuf) {
        let key = seal::key(parts);
        let file = |extension: &str| self.folder.join(format!("{key}.{extension}"));
        (file(kind.extension()), file("seal"))
    }

    /// Removes an entry that turned out to be of no use: the next one who wants it builds it again.
    pub fn remove(&self, file: &Path) {
        let _ = fs::remove_file(file.with_extension("seal"));
        let _ = fs::remove_file(file);
    }

    fn workplace(&self) -> Result<Workplace, String> {
        Workplace::new(&self.folder).map_err(|e| {
            format!(
                "no folder could be made in the cache folder {}: {e}; EBBTIDE_CACHE can name another",
                self.folder.display()
            )
        })
    }

    /// An empty cache inside this one, in the same file system and with the same limits: what goes wrong in one goes wrong
    /// in the other. It goes when it is dropped.
    pub fn probe(&self) -> Result<Probe, String> {
        self.prepare()?;
        let work = self.workplace()?;
        Ok(Probe { cache: Cache::at(work.path().join("probe")), _work: work })
    }

    /// What the cache holds.
    pub fn contents(&self) -> Contents {
        let (entries, abandoned) = (self.entries(), abandoned(&self.folder));
        Contents {
            entries: entries.len() as u64,
            bytes: entries.iter().map(|entry| entry.1).sum(),
            abandoned: abandoned.len() as u64,
            abandoned_bytes: abandoned.iter().map(|place| bytes_in(place)).sum(),
        }
    }

    /// Removes all entries, and what interrupted builds left behind; says how many entries there were. What is being built
    /// now, and what others put into the folder, stays.
    pub fn clear(&self) -> std::io::Result<u64> {
        let entries = self.entries();
        for (library, ..) in &entries {
            let _ = fs::remove_file(library.with_extension("seal"));
            match fs::remove_file(library) {
                // Another process was faster.
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        remove_abandoned(&self.folder);
        for left in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = left.file_name();
            let name = name.to_string_lossy();
            let orphan = has_key(&name, "seal")
                && !Kind::ALL.iter().any(|kind| left.path().with_extension(kind.extension()).exists());
            if orphan || is_temporary(&name, WRITING) {
                let _ = fs::remove_file(left.path());
            }
        }
        Ok(entries.len() as u64)
    }

    /// What keeps the cache from being used, in words.
    pub fn problem(&self) -> Option<String> {
        let work = self.prepare().and_then(|()| self.workplace().map(drop));
        work.err()
    }

    /// Makes the folder, private to the user; a folder that others own or can write is not used.
    fn prepare(&self) -> Result<(), String> {
        let fail = |what: String| {
            Err(format!("the cache folder {} {what}; EBBTIDE_CACHE can name another", self.folder.display()))
        };
        if let Err(e) = create_private(&self.folder) {
            return fail(format!("could not be made: {e}"));
        }
        let meta = match fs::metadata(&self.folder) {
            Ok(meta) => meta,
            Err(e) => return fail(format!("could not be looked at: {e}")),
        };
        if !is_own(&meta) {
            return fail("belongs to another user".to_string());
        }
        if others_can_write(&meta) {
            return fail(
                "can be written by others, who could put code there: if it is yours alone, `chmod go-w` it"
                    .to_string(),
            );
        }
        Ok(())
    }

    /// Is the entry complete, unharmed, and written by this user alone?
    fn is_sound(&self, library: &Path, seal: &Path) -> bool {
        let own = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && !others_can_write(&m) && is_own(&m))
        };
        if !own(library) || !own(seal) {
            return false;
        }
        let (Ok(bytes), Ok(found)) = (fs::read(library), read_seal(seal)) else { return false };
        found == seal::seal(&name_of(library), &bytes).as_bytes()
    }

    /// The libraries, oldest first, with their size.
    fn entries(&self) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
        let mut entries: Vec<_> = fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let meta = entry.metadata().ok().filter(|meta| !meta.is_dir())?;
                Kind::ALL.iter().find(|kind| has_key(&name.to_string_lossy(), kind.extension()))?;
                Some((entry.path(), meta.len(), meta.modified().ok()?))
            })
            .collect();
        entries.sort_by_key(|e| e.2);
        entries
    }

    fn trim(&self) {
        remove_abandoned(&self.folder);
        let entries = self.entries();
        let mut bytes: u64 = entries.iter().map(|e| e.1).sum();
        for (library, size, _) in entries {
            if bytes <= self.limit {
                break;
            }
            // A process that has it loaded keeps it.
            self.remove(&library);
            bytes -= size;
        }
    }
}

/// Is it the name of an entry's file with this extension?
fn has_key(name: &str, extension: &str) -> bool {
    let key = name.strip_suffix(extension).and_then(|rest| rest.strip_suffix('.'));
    key.is_some_and(|key| {
        key.len() == KEY_DIGITS && key.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// Writes a file so that others see all of it or nothing.
fn put(work: &Path, path: &Path, bytes: &[u8]) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{} could not be written: {e}", path.display());
    let mut file = tempfile::NamedTempFile::new_in(work).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// The name of a file, which the cache made.
fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a seal says, or the beginning of what is too long for one.
fn read_seal(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(seal::MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An empty cache inside another one.
#[derive(Debug)]
pub struct Probe {
    cache: Cache,
    _work: Workplace,
}

impl Probe {
    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }
}
