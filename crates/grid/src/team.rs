//! Runs one function for each part.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use ebbtide::ir::parts::{Cause, Stop, Transport, within};

use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::meeting::{Meeting, parts_of};
use crate::part::{Link, Part};
use crate::wire::{Alone, Wire};

/// The parts of a grid, and the processes that run them.
pub struct Team {
    grid: Arc<Grid>,
    wire: Option<Box<dyn Wire>>,
    computing: usize,
}

impl Team {
    /// All parts in this process.
    pub fn new(grid: &Grid) -> Team {
        Team::over(grid, Box::new(Alone))
    }

    /// The parts spread over the ranks of a wire: each rank runs some of them.
    pub fn over(grid: &Grid, wire: Box<dyn Wire>) -> Team {
        let computing = ebbtide_cpu::default_threads();
        Team { grid: Arc::new(grid.clone()), wire: Some(wire), computing }
    }

    /// How many parts of this process compute at a time; as many as a CPU device has threads unless something is said. Where a process
    /// has one part, it computes on all threads of its device, else on one.
    pub fn computing(mut self, parts: usize) -> Team {
        self.computing = parts.max(1);
        self
    }

    /// Runs `work` for every part of this process, each on a thread of its own, and returns when all parts of all processes
    /// have returned: what those of this process gave, in the order of their numbers.
    ///
    /// Where `work` fails on a part, it fails on all: every process returns the same error, with the part that caused it.
    pub fn run<R: Send>(mut self, work: impl Fn(&Part) -> Result<R> + Sync) -> Result<Vec<R>> {
        let Some(wire) = self.wire.take() else { return Ok(Vec::new()) };
        let parts = self.grid.parts();
        if wire.ranks() > parts {
            return Err(Error::Grid(format!(
                "{} processes cannot share {parts} parts: cut the grid into more parts, or start fewer processes",
                wire.ranks()
            )));
        }
        let local = parts_of(wire.rank(), wire.ranks(), parts);
        let threads = (local.len() > 1).then_some(1);
        let meeting = Arc::new(Meeting::new(parts, wire, self.computing));
        let results: Mutex<Vec<Option<R>>> = Mutex::new((0..local.len()).map(|_| None).collect());
        let outcome: Mutex<Option<std::result::Result<Option<Stop>, Stop>>> = Mutex::new(None);
        let start = |part: usize| {
            let link = Arc::new(Link::new(part, self.grid.clone(), meeting.clone(), threads));
            meeting.begin();
            let transport: Arc<dyn Transport> = link.clone();
            let run = || within(Some(transport), || work(&Part { link }));
            let stop = match catch_unwind(AssertUnwindSafe(run)) {
                Ok(Ok(result)) => {
                    results.lock().unwrap_or_else(PoisonError::into_inner)[part - local.start] = Some(result);
                    None
                }
                Ok(Err(Error::Engine(ebbtide::Error::Part(stop)))) => Some(stop),
                Ok(Err(error)) => Some(Stop { part, cause: Cause::Failed, message: error.to_string() }),
                Err(panic) => {
                    let said = panic.downcast_ref::<String>().map(String::as_str);
                    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
                    Some(Stop { part, cause: Cause::Failed, message: format!("it panicked: {said}") })
                }
            };
            if let Some(ended) = meeting.leave(part, stop) {
                *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            }
        };
        std::thread::scope(|scope| {
            for part in local.clone() {
                let start = &start;
                let named = std::thread::Builder::new().name(format!("ebbtide-part-{part}"));
                if let Err(error) = named.spawn_scoped(scope, move || start(part)) {
                    // Without it the others would wait for ever.
                    let message = format!("no thread could be started: {error}");
                    meeting.begin();
                    if let Some(ended) =
                        meeting.leave(part, Some(Stop { part, cause: Cause::Failed, message }))
                    {
                        *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                    }
                }
            }
        });
        let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Some(Ok(None)) => Ok(results.into_iter().flatten().collect()),
            Some(Ok(Some(stop))) | Some(Err(stop)) => Err(Error::Engine(ebbtide::Error::Part(stop))),
            None => Err(Error::Wire("its last meeting was never held".to_string())),
        }
    }
}
