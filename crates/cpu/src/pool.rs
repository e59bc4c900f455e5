//! A pool of threads that waits without using the CPU and starts together.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Some ten microseconds: longer than threads that share a task are apart.
const SPINS: i32 = 1000;

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
        let workers = workers.collect();
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let spins = if threads <= cores { SPINS } else { SPINS_WHERE_CORES_ARE_SHARED };
        Pool { shared, workers, busy: Mutex::default(), spins }
    }

    /// The number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// How often a thread that waits for others looks before it gives its time away.
    pub fn spins(&self) -> i32 {
        self.spins
    }

    /// Runs `job` on all threads and waits for all; `None` where the pool is at work for somebody else.
    pub fn run(&self, job: impl Fn(usize) + Send + Sync) -> Option<()> {
        let _busy = self.busy.try_lock().ok()?;
        if self.workers.is_empty() {
            job(0);
            return Some(());
        }
        let job: Arc<dyn Fn(usize) + Send + Sync + '_> = Arc::new(job);
        // SAFETY (*Liveness*): the job borrows from this call. `run` does not return before all workers have
        // dropped their handle on it, counted by `running`, and it takes its own back below.
        let forever: Job =
            unsafe { std::mem::transmute::<Arc<dyn Fn(usize) + Send + Sync + '_>, Job>(job.clone()) };
        {
            let mut state = lock(&self.shared.state);
            state.job = Some(forever);
            state.generation += 1;
            state.running = self.workers.len();
            self.shared.start.notify_all();
        }
        job(0);
        let mut state = lock(&self.shared.state);
        while state.running > 0 {
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
        Some(())
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
        if let Some(job) = job {
            job(number);
        }
        let mut state = lock(&shared.state);
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
            // A worker runs compiled code alone and cannot panic; there is nobody to tell if it did.
            let _ = worker.join();
        }
    }
}
