//! Running the C compiler: with an end, whatever it does, and not beyond the end of this process.

use std::io::Read as _;
use std::path::Path;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use crate::setting;

/// How long a compiler may take, in seconds, if nobody says otherwise: far longer than any compilation.
const SECONDS: usize = 600;

/// How long the end of the process waits for compilations to clean up.
const CLEANING: Duration = Duration::from_secs(5);

/// What is compiled in this process.
struct UnderWay {
    /// Compilations: each removes its folder at its end.
    builds: usize,
    /// The leaders of the groups of processes that they started.
    groups: Vec<u32>,
    /// The process ends: nothing is started any more.
    ends: bool,
    /// The process that started them: the child of a fork has started none.
    process: u32,
}

static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay::of(0));
static LESS_UNDER_WAY: Condvar = Condvar::new();

impl UnderWay {
    /// Nothing yet, in this process.
    const fn of(process: u32) -> UnderWay {
        UnderWay { builds: 0, groups: Vec::new(), ends: false, process }
    }
}

fn all_under_way() -> MutexGuard<'static, UnderWay> {
    let mut all = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
    if all.process != process::id() {
        *all = UnderWay::of(process::id());
    }
    all
}

/// A compilation that is under way until this is dropped: if the process ends before, its compiler ends and its folder goes.
pub(crate) struct Compilation(());

/// Notes that a compilation begins.
pub(crate) fn under_way() -> Result<Compilation, String> {
    static ONCE: Once = Once::new();
    // SAFETY (*Trusted code*): the function takes nothing, lives as long as the process, and does not unwind. Where it cannot
    // be registered, what is under way when the process ends is left to the next one, which clears it.
    ONCE.call_once(|| _ = unsafe { libc::atexit(end_all) });
    let mut all = all_under_way();
    if all.ends {
        return Err(ENDS.to_string());
    }
    all.builds += 1;
    Ok(Compilation(()))
}

const ENDS: &str = "the process is about to end";

/// Is the process about to end?
pub(crate) fn process_ends() -> bool {
    all_under_way().ends
}

impl Drop for Compilation {
    fn drop(&mut self) {
        let mut all = all_under_way();
        all.builds = all.builds.saturating_sub(1);
        LESS_UNDER_WAY.notify_all();
    }
}

/// Ends all compilers, and waits until those who started them have removed what they left.
extern "C" fn end_all() {
    let mut all = all_under_way();
    all.ends = true;
    for group in &all.groups {
        system::end_group(*group);
    }
    // A thread that compiles may itself have asked for the end: it cannot be waited for.
    drop(LESS_UNDER_WAY.wait_timeout_while(all, CLEANING, |all| all.builds > 0));
}

/// A group of processes that ends with this process.
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        all_under_way().groups.retain(|group| *group != self.0);
    }
}

/// Starts a command in a group of its own, unless the process ends.
///
/// Nothing is locked while it starts, which takes long: the child of a fork of the process would find it locked for ever.
fn start(command: &mut Command) -> std::io::Result<(Child, Group)> {
    let ends = || std::io::Error::other(ENDS);
    if process_ends() {
        return Err(ends());
    }
    let mut child = command.spawn()?;
    let mut all = all_under_way();
    if all.ends {
        // It began to end meanwhile, and did not see this.
        drop(all);
        system::end_group(child.id());
        child.wait()?;
        return Err(ends());
    }
    all.groups.push(child.id());
    let group = Group(child.id());
    Ok((child, group))
}

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
    let (mut child, group) = start(&mut to_run).map_err(failed)?;
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
                drop(group);
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
    // Once it was waited for, its number may be another's.
    drop(group);
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
    use std::process::{Command, ExitStatus};

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
        // SAFETY (*Trusted code*): it sends a signal, and touches no memory. Who holds the leader has not waited for it, so its
        // number belongs to no other group.
        _ = unsafe { libc::kill(-(leader as libc::pid_t), libc::SIGKILL) };
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
