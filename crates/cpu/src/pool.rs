//! A pool of threads that waits without using the CPU and starts together.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::team::Team;

/// A waiting thread looks for so long before it sleeps, which is about what it takes to wake one on a virtual machine: threads that
/// share a task are seldom further apart.
const SPINNING: Duration = Duration::from_micros(100);

/// With more threads than cores the others can arrive only when this one makes room.
const SPINS_WHERE_CORES_ARE_SHARED: i32 = 10;

type Job = Arc<dyn Fn(usize) + Send + Sync>;

/// Persistent threads that run one job together, each with its own number. The caller is thread 0.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One launch at a time has the workers; others run on their callers' threads.
    busy: Mutex<()>,
    team: Mutex<Team>,
}

/// How often a thread looks in [`SPINNING`]: what a pause takes differs tenfold between processors.
fn spins() -> i32 {
    const LOOKS: u32 = 256;
    let begun = Instant::now();
    (0..LOOKS).for_each(|_| std::hint::spin_loop());
    let nanoseconds = begun.elapsed().as_nanos().max(1);
    (SPINNING.as_nanos() * u128::from(LOOKS) / nanoseconds).clamp(20, 20_000) as i32
}

struct Shared {
    state: RwLock<State>,
    /// That of the state, changed after it; workers without a job wait for that.
    generation: AtomicU32,
    /// The workers that are not yet through with their job; the caller waits until there are none.
    running: AtomicU32,
    panicked: AtomicBool,
    closed: AtomicBool,
    spins: i32,
}

#[derive(Default)]
struct State {
    job: Option<Job>,
    /// The threads that run it.
    threads: usize,
    generation: u32,
}

impl Shared {
    /// Waits while the word has this value: looks for some time, and then sleeps.
    fn wait_while(&self, word: &AtomicU32, value: u32) {
        let mut spins = 0;
        while word.load(Ordering::Acquire) == value {
            if spins > self.spins {
                atomic_wait::wait(word, value);
            } else {
                std::hint::spin_loop();
                spins += 1;
            }
        }
    }

    /// Lets workers look at the state.
    fn begin(&self, generation: u32) {
        self.generation.store(generation, Ordering::Release);
        atomic_wait::wake_all(&self.generation);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What panics leaves no number half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool for `threads` threads, the caller's included.
    pub fn new(threads: usize) -> Pool {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let spins = if threads <= cores { spins() } else { SPINS_WHERE_CORES_ARE_SHARED };
        let shared = Arc::new(Shared {
            state: RwLock::default(),
            generation: AtomicU32::new(0),
            running: AtomicU32::new(0),
            panicked: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            spins,
        });
        let workers = (1..threads).filter_map(|number| {
            let shared = shared.clone();
            let name = format!("ebbtide-{number}");
            std::thread::Builder::new().name(name).spawn(move || work(&shared, number)).ok()
        });
        let workers: Vec<JoinHandle<()>> = workers.collect();
        let team = Mutex::new(Team::new(workers.len() + 1));
        Pool { shared, workers, busy: Mutex::default(), team }
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
        self.shared.spins
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
        let threads = threads.min(self.threads());
        if threads == 1 {
            job(0);
            return Some(());
        }
        let job: Arc<dyn Fn(usize) + Send + Sync + '_> = Arc::new(job);
        // SAFETY (*Liveness*): the job borrows from this call, which is left, also by a panic, only through the drop of
        // `all`: that waits until all workers have dropped their handle on the job, counted by `running`, and drops the
        // pool's own.
        let forever: Job =
            unsafe { std::mem::transmute::<Arc<dyn Fn(usize) + Send + Sync + '_>, Job>(job.clone()) };
        let shared = &self.shared;
        let all = UntilAllEnded(shared);
        shared.panicked.store(false, Ordering::Relaxed);
        shared.running.store(threads as u32 - 1, Ordering::Relaxed);
        let generation = {
            let mut state = shared.state.write().unwrap_or_else(PoisonError::into_inner);
            let generation = state.generation.wrapping_add(1);
            *state = State { job: Some(forever), threads, generation };
            generation
        };
        shared.begin(generation);
        job(0);
        drop(all);
        assert!(!shared.panicked.load(Ordering::Relaxed), "a thread of the pool panicked");
        Some(())
    }
}

/// Waits, when it is dropped, for the workers' end of a job.
struct UntilAllEnded<'a>(&'a Shared);

impl Drop for UntilAllEnded<'_> {
    fn drop(&mut self) {
        loop {
            match self.0.running.load(Ordering::Acquire) {
                0 => break,
                running => self.0.wait_while(&self.0.running, running),
            }
        }
        self.0.state.write().unwrap_or_else(PoisonError::into_inner).job = None;
    }
}

fn work(shared: &Shared, number: usize) {
    let mut seen = 0;
    loop {
        shared.wait_while(&shared.generation, seen);
        if shared.closed.load(Ordering::Acquire) {
            return;
        }
        // The next job may be there before workers are told so: what this worker has seen it does not run again.
        let job = {
            let state = shared.state.read().unwrap_or_else(PoisonError::into_inner);
            let is_new = std::mem::replace(&mut seen, state.generation) != state.generation;
            if is_new && number < state.threads { state.job.clone() } else { None }
        };
        let Some(job) = job else { continue };
        // The handle is dropped before `running` says so.
        if catch_unwind(AssertUnwindSafe(move || job(number))).is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        if shared.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            atomic_wait::wake_all(&shared.running);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.begin(self.shared.generation.load(Ordering::Relaxed).wrapping_add(1));
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

    #[test]
    fn each_thread_of_a_job_runs_it_once_whatever_jobs_came_before() {
        let pool = Pool::new(4);
        let ran: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        let mut expected = [0; 4];
        for k in 0..5_000 {
            let threads = 1 + (k * 7 + k / 5) % 4;
            pool.run(threads, |thread| {
                ran[thread].fetch_add(1, Ordering::Relaxed);
            });
            expected[..threads].iter_mut().for_each(|times| *times += 1);
            if k % 100 == 0 {
                let found: Vec<usize> = ran.iter().map(|times| times.load(Ordering::Relaxed)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
