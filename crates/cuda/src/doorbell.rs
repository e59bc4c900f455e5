//! What the host and a running kernel say to each other: that it is to end, and how far it is.
//!
//! Both are words of pinned memory. One thread of the process looks after them, and it asks nothing of the driver: while
//! somebody loads code, the driver lets all others wait until no kernel runs, and one without an end would never hear that
//! it is to end.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ebbtide_runtime::{Cancel, Error, Result};

/// `eb_words` of the prelude.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Words {
    /// Finished passes of the outermost loop; the kernel's.
    pub done: AtomicI64,
    /// Is the kernel to end? The host's.
    stop: AtomicI32,
}

/// How long a wish may wait until it is seen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// After so many looks with nothing to look after, the thread sleeps until there is.
const IDLE_LOOKS: u32 = 100;

/// A launch that is looked after.
struct Launch {
    number: u64,
    cancel: Cancel,
    passes: Arc<AtomicI64>,
    words: NonNull<Words>,
}

// SAFETY (*Liveness*): the words are atomic, and are there as long as the launch is listed.
unsafe impl Send for Launch {}

impl Launch {
    fn look(&self) {
        // SAFETY (*Liveness*): whoever listed the launch keeps the words until it is listed no more.
        let words = unsafe { self.words.as_ref() };
        if self.cancel.is_cancelled() {
            words.stop.store(1, Ordering::Relaxed);
        }
        self.passes.store(words.done.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

struct List {
    launches: Vec<Launch>,
    /// How many were ever listed.
    listed: u64,
    /// Is the thread there, and does it sleep?
    started: bool,
    asleep: bool,
}

static LIST: Mutex<List> =
    Mutex::new(List { launches: Vec::new(), listed: 0, started: false, asleep: false });
static AWAKE: Condvar = Condvar::new();

fn list() -> MutexGuard<'static, List> {
    // Nothing that runs under the lock can panic half-way.
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_looking() {
    let mut idle = 0;
    loop {
        let mut list = list();
        list.launches.iter().for_each(Launch::look);
        idle = if list.launches.is_empty() { idle + 1 } else { 0 };
        if idle > IDLE_LOOKS {
            list.asleep = true;
            while list.launches.is_empty() {
                list = AWAKE.wait(list).unwrap_or_else(PoisonError::into_inner);
            }
            list.asleep = false;
        }
        drop(list);
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// A launch is looked after as long as this lives.
#[derive(Debug)]
pub struct Watch {
    number: u64,
}

impl Watch {
    /// Looks after a launch that is about to begin: a kernel with these words ends when `cancel` says so, and `passes`
    /// follows what it says of how far it is.
    ///
    /// # Safety
    ///
    /// *Liveness*: the words are there as long as the watch is.
    pub unsafe fn begin(cancel: &Cancel, passes: &Arc<AtomicI64>, words: NonNull<Words>) -> Result<Watch> {
        let mut list = list();
        if !list.started {
            let thread = std::thread::Builder::new().name("ebbtide-doorbell".to_string());
            let spawned = thread.spawn(keep_looking);
            spawned.map_err(|source| Error::Io {
                what: "a thread that looks after launches could not be started".to_string(),
                source,
            })?;
            list.started = true;
        }
        list.listed += 1;
        let number = list.listed;
        let launch = Launch { number, cancel: cancel.clone(), passes: passes.clone(), words };
        // A wish that is older than the launch is seen by it.
        launch.look();
        list.launches.push(launch);
        if list.asleep {
            AWAKE.notify_one();
        }
        Ok(Watch { number })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut list = list();
        let found = list.launches.iter().position(|launch| launch.number == self.number);
        if let Some(launch) = found.map(|at| list.launches.swap_remove(at)) {
            launch.look();
            // The next launch with these words has not been asked to end.
            // SAFETY (*Liveness*): as for a look.
            unsafe { launch.words.as_ref() }.stop.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_and_what_a_kernel_says_are_seen_until_nobody_looks() {
        let (words, cancel, passes) = (Words::default(), Cancel::new(), Arc::<AtomicI64>::default());
        // SAFETY (*Liveness*): the words outlive the watches.
        let watch = || unsafe { Watch::begin(&cancel, &passes, NonNull::from(&words)) }.unwrap();
        let until = |seen: &dyn Fn() -> bool| {
            while !seen() {
                std::thread::yield_now();
            }
        };
        for round in 1..4 {
            let watched = watch();
            assert_eq!(words.stop.load(Ordering::Relaxed), 0);
            words.done.store(10 * round, Ordering::Relaxed);
            until(&|| passes.load(Ordering::Relaxed) == 10 * round);
            cancel.cancel();
            until(&|| words.stop.load(Ordering::Relaxed) == 1);
            // What is said last is seen too.
            words.done.store(10 * round + 1, Ordering::Relaxed);
            drop(watched);
            assert_eq!(passes.load(Ordering::Relaxed), 10 * round + 1);
            assert_eq!(words.stop.load(Ordering::Relaxed), 0);
            // A wish that stands is there before the launch is.
            drop(watch());
            let again = watch();
            assert_eq!(words.stop.load(Ordering::Relaxed), 1);
            drop(again);
            cancel.reset();
        }
    }

    #[test]
    fn each_launch_hears_its_own_wish() {
        let (one, two) = (Words::default(), Words::default());
        let (stays, ends) = (Cancel::new(), Cancel::new());
        // SAFETY (*Liveness*): the words outlive the watches.
        let watch = |cancel, words| unsafe { Watch::begin(cancel, &Arc::default(), NonNull::from(words)) };
        let watches = [watch(&stays, &one).unwrap(), watch(&ends, &two).unwrap()];
        ends.cancel();
        while two.stop.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(one.stop.load(Ordering::Relaxed), 0);
        drop(watches);
    }
}
