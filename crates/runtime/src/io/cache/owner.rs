//! Whose a file is, and who else can write it, as far as the system says.
//!
//! On Windows a user's folders are private by their access lists, which new files take over; there is nothing to ask.

#[cfg(unix)]
mod system {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    use std::path::Path;

    /// Makes a folder, and those above it, for the user alone.
    pub fn create_private(folder: &Path) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    /// Does it belong to the user of this process?
    pub fn is_own(meta: &Metadata) -> bool {
        // Linux says whose the process is; elsewhere a temporary file does.
        let own = fs::metadata("/proc/self").or_else(|_| tempfile::tempfile()?.metadata());
        own.map_or(true, |own| own.uid() == meta.uid())
    }

    /// Can other users write it?
    pub fn others_can_write(meta: &Metadata) -> bool {
        meta.mode() & 0o022 != 0
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{self, Metadata};
    use std::path::Path;

    /// Makes a folder, and those above it.
    pub fn create_private(folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)
    }

    /// Does it belong to the user of this process?
    pub fn is_own(_: &Metadata) -> bool {
        true
    }

    /// Can other users write it?
    pub fn others_can_write(_: &Metadata) -> bool {
        false
    }
}

pub(super) use system::{create_private, is_own, others_can_write};
