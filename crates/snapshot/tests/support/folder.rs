//! Folders for runs that are durable very often.

/// A folder in memory, where there is such a file system: waiting for a disk proves nothing here.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
