//! Compiled code on disk: content-addressed, checksummed, written atomically, private to the user.
//!
//! An entry is a file `KEY.so` or `KEY.cubin` and a seal `KEY.seal` with the schema and the file's checksum. The key is
//! a hash over everything that the file depends on. An entry whose seal does not fit, or that another user
//! could have written, is not trusted: it is built again.
//!
//! The folder may hold other things: only files and folders whose names are made here are counted or removed, and
//! the permissions of a folder that was there are left as they are.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Changes when what is stored changes its meaning.
const SCHEMA: &str = "ebbtide-cache-1";

/// Begins the names of files that are being written.
const WRITING: &str = ".ebbtide-write-";

/// Begins the names of folders in which something is built.
const BUILDING: &str = ".ebbtide-build-";

/// The hexadecimal digits of a key.
const KEY_DIGITS: usize = 40;

/// The random characters at the end of a temporary name.
const RANDOM: usize = 6;

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

    /// The same cache, kept to so many bytes.
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
        let key = key(parts);
        let (file, seal) = (
            self.folder.join(format!("{key}.{}", kind.extension())),
            self.folder.join(format!("{key}.seal")),
        );
        self.prepare()?;
        if self.is_sound(&file, &seal) {
            return Ok((file, Found::Hit));
        }
        let work = tempfile::Builder::new()
            .prefix(BUILDING)
            .rand_bytes(RANDOM)
            .tempdir_in(&self.folder)
            .map_err(|e| format!("no folder could be made in {}: {e}", self.folder.display()))?;
        let bytes = build(work.path())?;
        // The file first: a seal without its file, or with another one, does not fit.
        self.put(&file, &bytes)?;
        self.put(&seal, seal_of(&bytes).as_bytes())?;
        self.trim();
        Ok((file, Found::Built))
    }

    /// What the cache holds.
    pub fn contents(&self) -> Contents {
        self.entries().iter().fold(Contents::default(), |c, (_, bytes, _)| Contents {
            entries: c.entries + 1,
            bytes: c.bytes + bytes,
        })
    }

    /// Removes all entries, and what interrupted builds left behind; says how many entries there were. What
    /// others put into the folder stays.
    pub fn clear(&self) -> std::io::Result<u64> {
        let entries = self.entries();
        for (library, ..) in &entries {
            fs::remove_file(library)?;
        }
        for left in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = left.file_name();
            let name = name.to_string_lossy();
            if is_temporary(&name, BUILDING) {
                let _ = fs::remove_dir_all(left.path());
            } else if has_key(&name, "seal") || is_temporary(&name, WRITING) {
                let _ = fs::remove_file(left.path());
            }
        }
        Ok(entries.len() as u64)
    }

    /// What keeps the cache from being used, in words.
    pub fn problem(&self) -> Option<String> {
        let work = self.prepare().and_then(|()| {
            tempfile::tempfile_in(&self.folder)
                .map(drop)
                .map_err(|e| format!("nothing can be written to {}: {e}", self.folder.display()))
        });
        work.err()
    }

    /// Makes the folder, private to the user; a folder that others own or can write is not used.
    fn prepare(&self) -> Result<(), String> {
        let fail = |what: String| {
            Err(format!("the cache folder {} {what}; EBBTIDE_CACHE can name another", self.folder.display()))
        };
        if let Err(e) = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder) {
            return fail(format!("could not be made: {e}"));
        }
        let meta = match fs::metadata(&self.folder) {
            Ok(meta) => meta,
            Err(e) => return fail(format!("could not be looked at: {e}")),
        };
        if !is_own(&meta) {
            return fail("belongs to another user".to_string());
        }
        if meta.mode() & 0o022 != 0 {
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
            fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.mode() & 0o022 == 0 && is_own(&m))
        };
        if !own(library) || !own(seal) {
            return false;
        }
        let (Ok(bytes), Ok(seal)) = (fs::read(library), fs::read_to_string(seal)) else { return false };
        seal == seal_of(&bytes)
    }

    /// Writes a file so that others see all of it or nothing.
    fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let fail = |e: std::io::Error| format!("{} could not be written: {e}", path.display());
        let mut names = tempfile::Builder::new();
        let mut file = names.prefix(WRITING).rand_bytes(RANDOM).tempfile_in(&self.folder).map_err(fail)?;
        file.write_all(bytes).map_err(fail)?;
        file.persist(path).map_err(|e| fail(e.error))?;
        Ok(())
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
        let entries = self.entries();
        let mut bytes: u64 = entries.iter().map(|e| e.1).sum();
        for (library, size, _) in entries {
            if bytes <= self.limit {
                break;
            }
            // A process that has it loaded keeps it.
            let _ = fs::remove_file(library.with_extension("seal"));
            let _ = fs::remove_file(&library);
            bytes -= size;
        }
    }
}

/// Does it belong to the user of this process, as far as the system says?
fn is_own(meta: &fs::Metadata) -> bool {
    fs::metadata("/proc/self").map_or(true, |own| own.uid() == meta.uid())
}

/// Is it the name of an entry's file with this extension?
fn has_key(name: &str, extension: &str) -> bool {
    let key = name.strip_suffix(extension).and_then(|rest| rest.strip_suffix('.'));
    key.is_some_and(|key| {
        key.len() == KEY_DIGITS && key.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// Is it a temporary name that begins so?
fn is_temporary(name: &str, prefix: &str) -> bool {
    let random = name.strip_prefix(prefix);
    random.is_some_and(|random| random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [SCHEMA, env!("CARGO_PKG_VERSION")].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..KEY_DIGITS].to_string()
}

fn seal_of(library: &[u8]) -> String {
    format!("{SCHEMA} {}\n", blake3::hash(library).to_hex())
}
