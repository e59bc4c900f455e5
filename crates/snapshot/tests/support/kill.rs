//! Processes that end at named points of their file operations: see `snapshot/src/fs/kill.rs`. Shared by the tests of
//! several crates. Nothing here depends on how fast the machine is.
#![allow(dead_code, reason = "each crate uses a part of it")]

use std::path::Path;
use std::process::{Command, Stdio};

/// What became of a process that was to end at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It ended there.
    Killed,
    /// It was done before it came there.
    Done,
}

/// A test of this binary, marked `#[ignore]`, as a process of its own.
pub fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--test-threads=1"]);
    command
}

/// Runs a process to its end, or to a point such as `before:commit:3`.
pub fn run_until(mut command: Command, point: &str) -> Life {
    let output =
        command.env("EBBTIDE_KILL_AT", point).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    if output.status.success() {
        return Life::Done;
    }
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(is_aborted(&output.status), "{point}: {:?}: {said}", output.status);
    Life::Killed
}

#[cfg(unix)]
fn is_aborted(status: &std::process::ExitStatus) -> bool {
    const SIGABRT: i32 = 6;
    std::os::unix::process::ExitStatusExt::signal(status) == Some(SIGABRT)
}

#[cfg(not(unix))]
fn is_aborted(status: &std::process::ExitStatus) -> bool {
    !status.success() && status.code() != Some(101)
}

/// Both sides of every commit, and before every operation, each until a process is done before it comes there: calls
/// `life`, which must go on to the point that it is given, and returns how many were killed. `stride` leaves points out.
pub fn at_every_point(stride: usize, mut life: impl FnMut(&str) -> Life) -> usize {
    let kinds = ["before:any", "amid:write", "before:commit", "amid:commit", "after:commit", "after:rename"];
    let mut killed = 0;
    for kind in kinds {
        for k in (1..).step_by(stride) {
            match life(&format!("{kind}:{k}")) {
                Life::Killed => killed += 1,
                Life::Done => break,
            }
        }
    }
    killed
}

/// How large the problems of children are: `EBBTIDE_TEST_SIZE` makes them a hundredth or a hundred times of what they are.
/// Claims must hold for every size.
pub fn sized(usual: usize) -> usize {
    let size: f64 = std::env::var("EBBTIDE_TEST_SIZE").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    ((usual as f64 * size) as usize).max(4)
}

/// The names and contents of all files in a directory.
pub fn contents(dir: &Path) -> std::collections::BTreeMap<std::ffi::OsString, Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Default::default() };
    let files = entries.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_file());
    files.map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap())).collect()
}
