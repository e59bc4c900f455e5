//! Programs that run on the parts of a grid: what a part sees of the others.
//!
//! A *part* is a run of an ordinary program on a thread of its own. The thread is given a [`Transport`] ([`within`]), and the
//! [collective](Collective) operations of the program are blocking calls on it. `ir` says what a collective means, in terms
//! of part numbers alone: so the bits do not depend on where the parts run. It does not know grids, processes or machines.

mod collective;
mod halo;
mod reduce;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

pub use collective::{Collective, has_collectives, is_collective};
pub use halo::check_scatters;

use crate::syntax::HostArg;
use crate::syntax::LibraryCall;
use crate::syntax::Program;

/// What connects a part with the others.
///
/// [`gather`](Self::gather), [`exchange`](Self::exchange) and [`end`](Self::end) are collective: they return when all parts
/// have made the call, with the same `at`. Where they have not, all parts get the same [`Stop`]; a part that has got one
/// has the calls up to the next [`end`](Self::end) behind it.
pub trait Transport: Send + Sync {
    /// The number of this part.
    fn part(&self) -> usize;

    /// The number of all parts.
    fn parts(&self) -> usize;

    /// How many threads the part may compute on; `None` for those of the device.
    fn threads(&self) -> Option<usize>;

    /// With how many parts it shares memory.
    fn sharing(&self) -> Sharing;

    /// What the parts are: the extents and borders of the grid and the number of this part. The same text is the same part.
    fn identity(&self) -> String;

    /// The bytes of every part, in the order of their numbers.
    fn gather(&self, at: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Stop>;

    /// Moves halos of arrays of the grid.
    fn exchange(&self, at: &str, way: Way, arrays: &mut [HostArg<'_>]) -> Result<(), String>;

    /// Ends a launch. It is an error on all parts unless all ended alike.
    fn end(&self, at: &str, ending: Ending) -> Result<(), Stop>;
}

/// How many parts share memory, the part that is asked included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The parts of its process: they share the memory of a device.
    pub process: usize,
    /// The parts of all processes on its machine: they share the memory of the machine.
    pub machine: usize,
}

/// Which way halos move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Halos take what their owners hold.
    Fill,
    /// What is in halos is added to what its owner holds, neighbours in the order of their numbers; then halos are zero.
    Add,
}

/// How a launch ended on one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a result. Parts that end with different texts (the places where they yielded) have not ended alike.
    Done(String),
    /// With an error, a wish to stop, or a yield that the others do not share.
    Stopped(Stop),
}

/// Why a launch stopped on all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A part met an error.
    Failed,
    /// A part was asked to stop.
    Cancelled,
    /// A part yielded where others did not.
    Yielded,
    /// Parts executed different statements, or a different number of iterations.
    Disagreed,
    /// A part had returned.
    Left,
}

/// What all parts get where one of them stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The part that caused it; of several the one with the least number.
    pub part: usize,
    /// Why.
    pub cause: Cause,
    /// What it said.
    pub message: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stop { part, cause, message } = self;
        match cause {
            Cause::Failed => write!(f, "part {part} failed: {message}"),
            Cause::Cancelled => write!(f, "part {part} was cancelled: {message}"),
            Cause::Yielded => write!(
                f,
                "part {part} yielded and others did not: {message}; `all_max` its flag in the region, so that all parts \
                 yield together"
            ),
            Cause::Disagreed => write!(f, "the parts do not do the same: {message}"),
            Cause::Left => write!(f, "part {part} has returned: {message}"),
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Transport>>> = const { RefCell::new(None) };
    static STATEMENT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The transport of the part that this thread runs, if it runs one.
pub fn current() -> Option<Arc<dyn Transport>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Does this thread run a part?
pub fn is_part() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Runs `work` as a part with this transport, or outside of all parts.
pub fn within<R>(transport: Option<Arc<dyn Transport>>, work: impl FnOnce() -> R) -> R {
    struct PutBack(Option<Arc<dyn Transport>>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = PutBack(CURRENT.replace(transport));
    work()
}

/// Runs an operation of a program on the host. A collective knows the statement that it is by this.
pub fn call_operation(program: &Program, call: &LibraryCall, args: &mut [HostArg<'_>]) -> Result<(), String> {
    let operation = program.operation(call).ok_or("there is no such operation")?;
    if is_collective(&operation.name) && is_part() {
        let number = program.operations.iter().position(|o| Arc::ptr_eq(o, operation)).unwrap_or(0);
        let mut at = format!("`{}`, operation {number} of `{}`", operation.name, program.name);
        if let Some(site) = &call.site {
            at.push_str(&format!(", {site}"));
        }
        STATEMENT.set(at);
    }
    operation.call(args)
}

/// The statement that is being executed.
fn statement() -> String {
    STATEMENT.with_borrow(Clone::clone)
}
