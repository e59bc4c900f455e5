//! A pool of threads that waits without using the CPU and starts together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::team::Team;

/// A waiting thread looks for ten microseconds before it sleeps: longer than threads that share a task are apart.
const SPINNING: Duration = Duration::from_micros(10);

/// With more threads than cores the others can arrive only when this one makes room.
const SPINS_WHERE_CORES_ARE_SHARED: i32 = 10;

type Job = Arc<dyn Fn(usize) + Send + Sync>;

/// Persistent threads that run one job together, each with its own number. The caller is thread 0.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One launch at a time has the workers; others run on their callers' threads.
    busy: Mutex<()>,
    spins: i32,
    team: Mutex<Team>,
}

/// How often a thread looks in [`SPINNING`]: what a pause takes differs tenfold between processors.
fn spins() -> i32 {
    const LOOKS: u32 = 256;
    let begun = Instant::now();
    (0..LOOKS).for_each(|_| std::hint::spin_loop());
    let nanoseconds = begun.elapsed().as_nanos().max(1);
    (SPINNING.as_nanos() * u128::from(LOOKS) / nanoseconds).clamp(20, 5000) as i32
}

struct Shared {
    state: Mutex<State>,
    start: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    generation: u64,
    running: usize,
    panicked: bool,
    closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker's panic cannot leave the counters half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool for `threads` threads, the caller's included.
    pub fn new(threads: usize) -> Pool {
        let shared =
            Arc::new(Shared { state: Mutex::default(), start: Condvar::new(), done: Condvar::new() });
        let workers = (1..threads).filter_map(|number| {
            let shared = shared.clone();
            let name = format!("ebbtide-{number}");
            std::thread::Builder::new().name(name).spawn(move || work(&shared, number)).ok()
        });
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let spins = if threads <= cores { spins() } else { SPINS_WHERE_CORES_ARE_SHARED };
        let workers: Vec<JoinHandle<()>> = workers.collect();
        let team = Mutex::new(Team::new(workers.len() + 1));
        Pool { shared, workers, busy: Mutex::default(), spins, team }
    }

    /// How many threads a launch should have that begins now, in nanoseconds.
    pub fn team(&self, now: i64) -> usize {
        lock(&self.team).size(now)
    }

    /// A launch of so many threads has ended.
    pub fn ended(&self, now: i64, threads: usize, elapsed: i64, slept: i64) {
        lock(&self.team).ended(now, threads, elapsed, slept);
    }

    /// The number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// How often a thread that waits for others looks before it gives its time away.
    pub fn spins(&self) -> i32 {
        self.spins
    }

    /// Runs `job` on the first `threads` threads and waits for all; `None` where the pool is at work for somebody else.
    ///
    /// # Panics
    ///
    /// Where `job` panicked on some thread, after all threads have ended.
    pub fn run(&self, threads: usize, job: impl Fn(usize) + Send + Sync) -> Option<()> {
        let _busy = match self.busy.try_lock() {
            Err(TryLockError::WouldBlock) => return None,
            // A job that panicked has left nothing behind.
            Err(TryLockError::Poisoned(free)) => free.into_inner(),
            Ok(free) => free,
        };
        if self.workers.is_empty() {
            job(0);
            return Some(());
        }
        let job = move |thread| {
            if thread < threads {
                job(thread);
            }
        };
        let job: Arc<dyn Fn(usize) + Send + Sync + '_> = Arc::new(job);
        // SAFETY (*Liveness*): the job borrows from this call, which is left, also by a panic, only through the drop of
        // `all`: that waits until all workers have dropped their handle on the job, counted by `running`, and drops the
        // pool's own.
        let forever: Job =
            unsafe { std::mem::transmute::<Arc<dyn Fn(usize) + Send + Sync + '_>, Job>(job.clone()) };
        let all = UntilAllEnded(&self.shared);
        {
            let mut state = lock(&self.shared.state);
            state.job = Some(forever);
            state.generation += 1;
            state.running = self.workers.len();
            state.panicked = false;
            self.shared.start.notify_all();
        }
        job(0);
        drop(all);
        assert!(!lock(&self.shared.state).panicked, "a thread of the pool panicked");
        Some(())
    }
}

/// Waits, when it is dropped, for the workers' end of a job.
struct UntilAllEnded<'a>(&'a Shared);

impl Drop for UntilAllEnded<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        while state.running > 0 {
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
    }
}

fn work(shared: &Shared, number: usize) {
    let mut seen = 0;
    loop {
        let job = {
            let mut state = lock(&shared.state);
            while state.generation == seen && !state.closed {
                state = shared.start.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.closed {
                return;
            }
            seen = state.generation;
            state.job.clone()
        };
        let panicked = job.is_some_and(|job| {
            // The handle is dropped before `running` says so.
            catch_unwind(AssertUnwindSafe(move || job(number))).is_err()
        });
        let mut state = lock(&shared.state);
        state.panicked |= panicked;
        state.running -= 1;
        if state.running == 0 {
            shared.done.notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.start.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches what its jobs throw.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn c59_a_job_that_unwinds_on_the_first_thread_outlives_no_worker() {
        let pool = Pool::new(3);
        for _ in 0..100 {
            let (entered, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let borrowed = vec![7usize; 1000];
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.run(3, |thread| {
                    if thread == 0 {
                        // The others are at work.
                        while entered.load(Ordering::Acquire) < 2 {
                            std::hint::spin_loop();
                        }
                        panic!("on purpose");
                    }
                    entered.fetch_add(1, Ordering::Release);
                    (0..100).for_each(|_| assert_eq!(borrowed.iter().sum::<usize>(), 7000));
                    ended.fetch_add(1, Ordering::Release);
                })
            }));
            assert!(caught.is_err());
            assert_eq!(ended.load(Ordering::Acquire), 2, "all had ended when the panic left `run`");
        }
    }

    #[test]
    fn a_panic_of_a_worker_is_the_callers_and_the_pool_goes_on() {
        let pool = Pool::new(3);
        let caught =
            catch_unwind(AssertUnwindSafe(|| pool.run(3, |thread| assert_ne!(thread, 1, "on purpose"))));
        assert!(caught.is_err());
        let ran = AtomicUsize::new(0);
        assert!(pool.run(3, |_| _ = ran.fetch_add(1, Ordering::Relaxed)).is_some());
        assert_eq!(ran.into_inner(), 3);
    }
}
