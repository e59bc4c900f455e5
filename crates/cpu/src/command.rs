//! Running the C compiler: with an end, whatever it does.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use crate::setting;

/// How long a compiler may take, in seconds, if nobody says otherwise: far longer than any compilation.
const SECONDS: usize = 600;

/// What a command did.
pub(crate) struct Done {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// How it ended, where something ended it.
    pub fn killed(&self) -> Option<String> {
        let signal = system::signal(self.status)?;
        // The system kills so when memory is short.
        let why = if signal == 9 { ", perhaps for want of memory" } else { "" };
        Some(format!("was ended by signal {signal}{why}"))
    }
}

/// Runs a command to its end, or to the end of its time.
pub(crate) fn run(command: &Path, args: impl FnOnce(&mut Command)) -> Result<Done, String> {
    let shown = command.display();
    let failed = |e: std::io::Error| {
        format!("`{shown}` could not be run: {e}; install a C compiler or name another in EBBTIDE_CC")
    };
    let mut to_run = Command::new(command);
    args(&mut to_run);
    // A group of its own, so that what it started ends with it.
    to_run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    system::own_group(&mut to_run);
    let mut child = to_run.spawn().map_err(failed)?;
    let (sender, said) = channel();
    let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
        child.stdout.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
        child.stderr.take().map(|stream| Box::new(stream) as Box<dyn std::io::Read + Send>),
    ];
    for (which, stream) in streams.into_iter().enumerate() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What it said before reading failed is what there is; beyond some text nobody reads it.
            let _ = stream.map(|stream| stream.take(MOST_WORDS).read_to_end(&mut bytes));
            // Who waited may have given up.
            let _ = sender.send((which, String::from_utf8_lossy(&bytes).into_owned()));
        });
    }
    drop(sender);
    let mut texts = [String::new(), String::new()];
    let deadline = std::time::Instant::now() + limit();
    for _ in 0..texts.len() {
        match said.recv_timeout(deadline.saturating_duration_since(std::time::Instant::now())) {
            Ok((which, text)) => texts[which] = text,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                system::end_group(child.id());
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "`{shown}` did not come to an end in {} seconds and was stopped: is it a C compiler? EBBTIDE_CC can \
                     name another, EBBTIDE_CC_SECONDS gives it more time",
                    limit().as_secs()
                ));
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    let [stdout, stderr] = texts;
    Ok(Done { status, stdout, stderr })
}

/// The most bytes that are kept of what a command says.
const MOST_WORDS: u64 = 1 << 20;

/// How long a compiler may take.
fn limit() -> Duration {
    static ONCE: Once = Once::new();
    static LIMIT: OnceLock<Duration> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let seconds = setting("EBBTIDE_CC_SECONDS", "a number of seconds from 1 on", &ONCE, |n| *n > 0);
        Duration::from_secs(seconds.unwrap_or(SECONDS) as u64)
    })
}

#[cfg(unix)]
mod system {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Command, ExitStatus, Stdio};

    /// The signal that ended a process, where one did.
    pub fn signal(status: ExitStatus) -> Option<i32> {
        status.signal()
    }

    /// Gives a process a group of its own.
    pub fn own_group(command: &mut Command) {
        command.process_group(0);
    }

    /// Ends all processes of a group that was made here.
    pub fn end_group(leader: u32) {
        let script = format!("kill -9 -- -{leader}");
        let _ = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[cfg(not(unix))]
mod system {
    use std::process::{Command, ExitStatus, Stdio};

    /// There are no signals here.
    pub fn signal(_: ExitStatus) -> Option<i32> {
        None
    }

    /// Children are found by their parent here.
    pub fn own_group(_: &mut Command) {}

    /// Ends a process and its children.
    pub fn end_group(leader: u32) {
        let id = leader.to_string();
        let silent = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        let _ = silent(Command::new("taskkill").args(["/T", "/F", "/PID", &id]));
    }
}
