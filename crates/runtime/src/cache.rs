//! Compiled code on disk: content-addressed, checksummed, written atomically, private to the user.
//!
//! An entry is a file `KEY.so` or `KEY.cubin` and a seal `KEY.seal` with the schema and the file's checksum. The key is
//! a hash over everything that the file depends on. An entry whose seal does not fit, or that another user
//! could have written, is not trusted: it is built again.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Changes when what is stored changes its meaning.
const SCHEMA: &str = "ebbtide-cache-1";

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
            .prefix("build-")
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

    /// Removes all entries, and what interrupted builds left behind; says how many entries there were.
    pub fn clear(&self) -> std::io::Result<u64> {
        let entries = self.entries();
        for (library, ..) in &entries {
            fs::remove_file(library)?;
        }
        for left in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = left.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("build-") {
                let _ = fs::remove_dir_all(left.path());
            } else if name.ends_with(".seal") || name.starts_with(".tmp") {
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

    /// Makes the folder, private to the user; others' folders are not used.
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
        if meta.mode() & 0o022 != 0
            && let Err(e) = fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))
        {
            return fail(format!("can be written by others: {e}"));
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
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(fail)?;
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
            .filter(|entry| {
                entry.path().extension().is_some_and(|e| Kind::ALL.iter().any(|kind| e == kind.extension()))
            })
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
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

fn key(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [SCHEMA, env!("CARGO_PKG_VERSION")].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..40].to_string()
}

fn seal_of(library: &[u8]) -> String {
    format!("{SCHEMA} {}\n", blake3::hash(library).to_hex())
}
