//! The code of a program, quick or optimised. Input: the text of a program; output: functions to call.
//!
//! The quick code is there sooner and runs slower. Both are compiled with the same flags of arithmetic, so they have the same
//! bits. The optimised code is made in the background as soon as the quick code has run for a while, and takes over between
//! two segments. A segment with much work waits for it. Where work cannot be told, the first code is optimised already; if it is long,
//! only moderately, since the time of an optimising compiler grows faster than a text.

use std::process;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use ebbtide_codegen::Unit;
use ebbtide_runtime::cache::{Cache, Found};

use crate::abi::Segment;
use crate::compiler::Compiler;
use crate::flags::{MODERATE, OPTIMIZED, QUICK, UNOPTIMIZED};
use crate::load::load;

/// A segment with so much work, in additions, waits for the optimised code: a tenth of a second on one core.
const MUCH: f64 = 2e8;

/// When the quick code has run for so long, in nanoseconds, the optimised code is made.
const A_WHILE: i64 = 50_000_000;

/// A text of so many bytes is long: about 3 000 lines, which gcc optimises in a few seconds. Of the 41 000 lines of the second
/// derivative of a loop with two Fourier transforms it makes moderate code in 21 s and optimised code in 60 s.
const LONG: usize = 150_000;

/// When code is optimised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Optimize {
    /// Where it pays: code that computes for long is optimised, the rest is compiled sooner.
    #[default]
    WhereItPays,
    /// Before it runs for the first time.
    Always,
    /// Never: code of programs that hardly compute, of which there are many. It is there soonest, and runs slowest.
    Never,
}

impl Optimize {
    /// What `EBBTIDE_OPTIMIZE` says, if anything.
    pub(crate) fn named(name: &str) -> Option<Optimize> {
        match name {
            "auto" => Some(Optimize::WhereItPays),
            "always" => Some(Optimize::Always),
            "never" => Some(Optimize::Never),
            _ => None,
        }
    }
}

/// What code is made of.
pub(crate) struct Recipe {
    pub compiler: Compiler,
    pub cache: Cache,
    pub unit: Arc<Unit>,
    pub segments: usize,
}

impl Recipe {
    fn load(&self, compiler: &Compiler) -> Result<(Loaded, Found), String> {
        let (library, found) = load(compiler, (&self.unit.source, self.unit.part_count), &self.cache)?;
        let mut entries = Vec::new();
        for k in 0..self.segments {
            // SAFETY (*Trusted code*): the text declares `segment_K` with this signature, and the library is made from it.
            let entry = unsafe { library.get::<Segment>(format!("segment_{k}").as_bytes()) }
                .map_err(|e| e.to_string())?;
            entries.push(*entry);
        }
        Ok((Loaded { entries, _library: library }, found))
    }
}

struct Loaded {
    entries: Vec<Segment>,
    /// Entries point into it.
    _library: libloading::Library,
}

/// The level of the first code of a text of so many bytes. `is_there` says whether its optimised code is in the cache.
fn first_level(
    optimize: Optimize,
    countable: bool,
    bytes: usize,
    is_there: impl FnOnce() -> bool,
) -> &'static str {
    match optimize {
        Optimize::Always => OPTIMIZED,
        Optimize::Never => UNOPTIMIZED,
        Optimize::WhereItPays if !countable && bytes < LONG => OPTIMIZED,
        Optimize::WhereItPays if is_there() => OPTIMIZED,
        Optimize::WhereItPays if !countable => MODERATE,
        Optimize::WhereItPays => QUICK,
    }
}

/// The code of a program.
pub(crate) struct Code {
    first: Loaded,
    /// How to make better code; none where there is none to be had.
    recipe: Option<Recipe>,
    /// Whether much work waits for better code.
    waits: bool,
    better: OnceLock<Loaded>,
    progress: Mutex<Progress>,
    /// The better code is there, or will never be.
    ended: Condvar,
}

/// How far the better code is.
enum Progress {
    /// The first code has run for so long.
    Ran(i64),
    /// A thread of this process makes it: the child of a fork has no such thread.
    UnderWay(u32),
    /// It is there, or could not be made.
    Ended,
}

impl Code {
    /// The code to begin with. `countable` says whether a launch can tell how much each segment computes.
    pub fn new(recipe: Recipe, optimize: Optimize, countable: bool) -> Result<(Arc<Code>, Found), String> {
        let is_there = || recipe.compiler.has(&recipe.unit.source, &recipe.cache);
        let level = first_level(optimize, countable, recipe.unit.source.len(), is_there);
        let (first, found) = recipe.load(&recipe.compiler.at(level))?;
        let code = Code {
            first,
            recipe: matches!(level, QUICK | MODERATE).then_some(recipe),
            waits: level == QUICK,
            better: OnceLock::new(),
            progress: Mutex::new(Progress::Ran(0)),
            ended: Condvar::new(),
        };
        Ok((Arc::new(code), found))
    }

    /// The function of a segment that is about to compute so much.
    pub fn entry(&self, segment: usize, work: impl FnOnce() -> f64) -> Segment {
        if let Some(recipe) = &self.recipe
            && self.waits
            && self.better.get().is_none()
            && work() >= MUCH
        {
            self.wait_for_better(recipe);
        }
        self.better.get().unwrap_or(&self.first).entries[segment]
    }

    /// Is there better code to be had than what runs now?
    pub fn can_improve(&self) -> bool {
        self.recipe.is_some() && self.better.get().is_none()
    }

    /// The first code has run for so many nanoseconds more.
    pub fn ran(self: &Arc<Code>, nanoseconds: i64) {
        let mut progress = self.progress();
        let Progress::Ran(so_far) = &mut *progress else { return };
        *so_far += nanoseconds;
        if *so_far < A_WHILE {
            return;
        }
        *progress = Progress::UnderWay(process::id());
        drop(progress);
        let code = self.clone();
        let thread = std::thread::Builder::new().name("ebbtide compile".to_string());
        // Where no thread can be had the quick code goes on.
        if thread.spawn(move || code.recipe.as_ref().map(|recipe| code.make_better(recipe))).is_err() {
            self.end();
        }
    }

    fn wait_for_better(&self, recipe: &Recipe) {
        let mut progress = self.progress();
        loop {
            match *progress {
                Progress::Ended => return,
                Progress::UnderWay(by) if by == process::id() => {
                    progress = self.ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
                }
                Progress::UnderWay(_) | Progress::Ran(_) => break,
            }
        }
        *progress = Progress::UnderWay(process::id());
        drop(progress);
        self.make_better(recipe);
    }

    fn make_better(&self, recipe: &Recipe) {
        /// Whoever waits goes on, whatever happens.
        struct Ends<'c>(&'c Code);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        let _ends = Ends(self);
        match recipe.load(&recipe.compiler) {
            Ok((better, _)) => _ = self.better.set(better),
            // The end of the process ends its compilers.
            Err(_) if crate::command::process_ends() => {}
            Err(reason) => ebbtide_runtime::warn(&format!(
                "a program goes on with code that was compiled quickly and runs slowly: {reason}"
            )),
        }
    }

    fn end(&self) {
        *self.progress() = Progress::Ended;
        self.ended.notify_all();
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_code_whose_work_cannot_be_told_is_not_optimised_before_it_runs() {
        let first = |countable, bytes| first_level(Optimize::WhereItPays, countable, bytes, || false);
        assert_eq!([first(true, 10), first(true, LONG)], [QUICK, QUICK]);
        assert_eq!([first(false, LONG - 1), first(false, LONG)], [OPTIMIZED, MODERATE]);
        assert_eq!(first_level(Optimize::WhereItPays, false, LONG, || true), OPTIMIZED);
        assert_eq!(first_level(Optimize::Always, false, LONG, || false), OPTIMIZED);
        assert_eq!(first_level(Optimize::Never, false, LONG, || false), UNOPTIMIZED);
    }
}
