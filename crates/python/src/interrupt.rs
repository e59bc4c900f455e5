//! Ctrl-C while a program runs.
//!
//! Python's own signal handler only notes the signal; the interpreter looks at it between two bytecodes, which a program
//! that runs in the main thread does not let it do. So a handler of ours stands before Python's: it counts and then
//! calls Python's. A thread looks at the count some twenty times a second while the main thread runs programs, and
//! cancels them if the handler of SIGINT in Python is the one that raises `KeyboardInterrupt`. The main thread then
//! lets Python raise it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use ebbtide_runtime::Cancel;
use pyo3::prelude::*;

/// A run is cancelled within this time, and the time that it needs to notice.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);
/// After so many looks without a run the thread sleeps until it is woken.
const PATIENCE: u32 = 25;

static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
static PYTHONS_HANDLER: AtomicUsize = AtomicUsize::new(0);
static RUNNING: Mutex<Vec<(u64, Cancel)>> = Mutex::new(Vec::new());
static ASLEEP: AtomicBool = AtomicBool::new(false);
static WATCHER: OnceLock<Thread> = OnceLock::new();
static MAIN: OnceLock<ThreadId> = OnceLock::new();
static FORKED: AtomicBool = AtomicBool::new(false);

/// Remembers the main thread; called when the package is imported there.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    let threading = py.import("threading")?;
    let here = threading.call_method0("current_thread")?;
    if here.is(&threading.call_method0("main_thread")?) {
        let _known = MAIN.set(thread::current().id());
    }
    Ok(())
}

pub fn after_fork() {
    // The thread that watches does not exist in the child: Ctrl-C is then seen when a program has ended.
    FORKED.store(true, Ordering::Relaxed);
}

extern "C" fn count(signal: libc::c_int) {
    INTERRUPTS.fetch_add(1, Ordering::Relaxed);
    let handler = PYTHONS_HANDLER.load(Ordering::Relaxed);
    if handler != 0 {
        // SAFETY: it is the address of the handler that `install` found, one that takes the signal alone.
        let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

/// Puts our handler before Python's, where Python has one.
fn install() {
    // SAFETY: plain calls of `sigaction` with structures that live here; the handler touches atomics alone, and calls what
    // was the handler before it.
    unsafe {
        let mut found: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGINT, std::ptr::null(), &mut found) != 0 {
            return;
        }
        let handler = found.sa_sigaction;
        let is_pythons = handler != libc::SIG_DFL
            && handler != libc::SIG_IGN
            && handler != count as *const () as usize
            && found.sa_flags & libc::SA_SIGINFO == 0;
        if is_pythons {
            PYTHONS_HANDLER.store(handler, Ordering::Relaxed);
            found.sa_sigaction = count as *const () as usize;
            libc::sigaction(libc::SIGINT, &found, std::ptr::null_mut());
        }
    }
}

fn running() -> MutexGuard<'static, Vec<(u64, Cancel)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run that Ctrl-C may cancel.
pub struct Watched {
    pub cancel: Option<Cancel>,
}

impl Watched {
    /// In the main thread: a switch that Ctrl-C turns on while this exists. Elsewhere Python has no Ctrl-C.
    pub fn begin() -> Watched {
        Watched::begin_with(&Cancel::new())
    }

    /// As [`Watched::begin`], with this switch.
    pub fn begin_with(cancel: &Cancel) -> Watched {
        if MAIN.get() != Some(&thread::current().id()) || FORKED.load(Ordering::Relaxed) {
            return Watched { cancel: None };
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            install();
            let watcher = thread::Builder::new().name("ebbtide-interrupts".to_string()).spawn(watch);
            if let Ok(watcher) = watcher {
                let _known = WATCHER.set(watcher.thread().clone());
            }
        });
        cancel.reset();
        running().push((INTERRUPTS.load(Ordering::Relaxed), cancel.clone()));
        if ASLEEP.load(Ordering::SeqCst)
            && let Some(watcher) = WATCHER.get()
        {
            watcher.unpark();
        }
        Watched { cancel: Some(cancel.clone()) }
    }

    /// Was it cancelled by Ctrl-C? Then Python raises what its handler raises.
    pub fn raised(&self, py: Python<'_>) -> PyResult<()> {
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => py.check_signals(),
            _ => Ok(()),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.cancel.is_some() {
            running().pop();
        }
    }
}

fn watch() {
    let mut idle = 0;
    let mut since = 0;
    loop {
        let first = running().first().map(|(count, _)| *count);
        match first {
            None if idle >= PATIENCE => {
                ASLEEP.store(true, Ordering::SeqCst);
                // A run that begins now sees us asleep and wakes us; one that began before is seen here.
                if running().is_empty() {
                    thread::park();
                }
                ASLEEP.store(false, Ordering::SeqCst);
                idle = 0;
                continue;
            }
            None => idle += 1,
            Some(count) => {
                idle = 0;
                since += 1;
                // Somebody may have replaced the handler since the last time.
                if since % PATIENCE == 0 {
                    install();
                }
                if INTERRUPTS.load(Ordering::Relaxed) != count && raises() {
                    running().iter().for_each(|(_, cancel)| cancel.cancel());
                }
            }
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// Is the handler of SIGINT in Python the one that raises `KeyboardInterrupt`?
fn raises() -> bool {
    let asked = Python::try_attach(|py| -> PyResult<bool> {
        let signal = py.import("signal")?;
        let handler = signal.call_method1("getsignal", (libc::SIGINT,))?;
        Ok(handler.is(&signal.getattr("default_int_handler")?))
    });
    matches!(asked, Some(Ok(true)))
}
