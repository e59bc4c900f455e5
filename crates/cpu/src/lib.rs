//! The CPU device: C through the system's compiler, run by a pool of threads.

mod abi;
mod code;
mod command;
mod compiler;
mod flags;
mod leave_vectors;
mod load;
mod native;
mod operation;
mod pool;
mod processor;
mod staging;
mod team;
mod term_counts;
mod threads;
mod work;

use std::sync::{Arc, Once};

use ebbtide_runtime::Device;

pub use code::Optimize;
pub use compiler::Compiler;
pub use ebbtide_runtime::Counters;
pub use ebbtide_runtime::cache::{Cache, Contents, Probe};

/// The greatest number of threads of a device: far more than machines have cores, and far less than a process can start.
const MOST_THREADS: usize = 4096;

/// How to make a CPU device.
#[derive(Clone, Debug, Default)]
pub struct Options {
    threads: Option<usize>,
    cache: Option<Cache>,
    optimize: Option<Optimize>,
}

impl Options {
    /// The defaults: as many threads as this process may use cores, [`default_threads`]; the user's cache.
    pub fn new() -> Options {
        Options::default()
    }

    /// A device with this number of threads, at most 4096; it may exceed the number of cores.
    pub fn threads(mut self, threads: usize) -> Options {
        self.threads = Some(threads.max(1));
        self
    }

    /// Compiled code is kept here.
    pub fn cache(mut self, cache: Cache) -> Options {
        self.cache = Some(cache);
        self
    }

    /// When code is optimised: where it pays, unless `EBBTIDE_OPTIMIZE` says otherwise. All have the same bits.
    pub fn optimize(mut self, optimize: Optimize) -> Options {
        self.optimize = Some(optimize);
        self
    }

    /// The device and its counters; why not, where no C compiler was found or there are too many threads.
    pub fn build(self) -> Result<(Device, Arc<Counters>), String> {
        let threads = self.threads.unwrap_or_else(default_threads);
        if threads > MOST_THREADS {
            return Err(format!("{threads} threads are more than the {MOST_THREADS} that a device can have"));
        }
        let compiler = Compiler::find()?;
        let counters = Arc::<Counters>::default();
        let pool = Arc::new(pool::Pool::new(threads));
        let cache = self.cache.unwrap_or_else(Cache::of_user);
        let optimize = self.optimize.unwrap_or_else(default_optimize);
        let cpu = native::Cpu { compiler, cache, optimize, pool, counters: counters.clone() };
        Ok((Device::new(Arc::new(cpu)), counters))
    }
}

/// What says how many threads this process should have, and how many: the cores that its affinity and its control groups
/// leave it, and what Slurm gave to each task.
pub fn threads_found() -> Vec<(&'static str, usize)> {
    threads::found(|name| std::env::var(name).ok())
}

/// The number of threads that a device has by default: that of `EBBTIDE_THREADS`, else the least of
/// [`threads_found`].
pub fn default_threads() -> usize {
    static ONCE: Once = Once::new();
    let wanted = format!("a number of threads from 1 to {MOST_THREADS}");
    let asked = setting("EBBTIDE_THREADS", &wanted, &ONCE, |n| (1..=MOST_THREADS).contains(n));
    asked.unwrap_or_else(|| threads::least(&threads_found()).min(MOST_THREADS))
}

/// When a device optimises if nobody says otherwise.
fn default_optimize() -> Optimize {
    static ONCE: Once = Once::new();
    let said = std::env::var("EBBTIDE_OPTIMIZE").ok().filter(|said| !said.is_empty());
    let found = said.as_deref().map(Optimize::named);
    if found == Some(None) {
        ONCE.call_once(|| {
            let said = said.as_deref().unwrap_or_default();
            ebbtide_runtime::warn(&format!(
                "EBBTIDE_OPTIMIZE={said} is ignored: it wants `auto`, `always` or `never`"
            ));
        });
    }
    found.flatten().unwrap_or_default()
}

/// What a variable of the environment says, where that fits; a warning, the first time, where it does not.
fn setting(name: &str, wanted: &str, once: &Once, fits: impl Fn(&usize) -> bool) -> Option<usize> {
    let said = std::env::var(name).ok().filter(|said| !said.is_empty())?;
    let found = said.parse().ok().filter(fits);
    if found.is_none() {
        once.call_once(|| ebbtide_runtime::warn(&format!("{name}={said} is ignored: it wants {wanted}")));
    }
    found
}

/// The CPU; the interpreter, with a warning, where no C compiler is found.
pub fn cpu() -> Device {
    match Options::new().build() {
        Ok((device, _)) => device,
        Err(reason) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| {
                ebbtide_runtime::warn(&format!("programs are interpreted, which is slow: {reason}"));
            });
            ebbtide_runtime::interpreter()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_threads_are_refused() {
        let error = Options::new().threads(20_000).build().err();
        assert_eq!(error.as_deref(), Some("20000 threads are more than the 4096 that a device can have"));
    }
}
