//! Launches that the host does not wait for.
//!
//! A launch takes the memory of the arrays that it writes with it and brings it back, each piece under the name
//! that it then has; memory that it reads it shares. So the borrows of the arguments end with the call, nothing
//! depends on the [`Pending`] being kept or dropped, and whoever touches an array first waits for its writers.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use ebbtide_ir::{Access, Param, Program, Role, parts as ir_parts};
use ebbtide_sweep::Cancel;

use crate::array::arguments::Arg;
use crate::array::lent_memory::Loan;
use crate::error::{Error, Result};
use crate::launch::parts;
use crate::launch::status::Status;
use crate::launch::yielded::Yielded;
use crate::launch::{Compiled, Prepared};
use crate::memory::buffer::Buffer;

/// A launch that runs while the host does something else. Dropping it is safe: the launch continues.
#[must_use = "the status of a launch says whether it yielded or failed"]
pub struct Pending {
    loan: Arc<Loan>,
    outcome: Arc<Outcome>,
    cancel: Cancel,
    done: Arc<AtomicI64>,
}

impl Pending {
    /// Has the launch ended, so that [`Pending::wait`] would return at once?
    pub fn poll(&self) -> Poll<()> {
        match self.loan.lock().ended {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// How many iterations of the outermost loop that runs now, or ran last, were finished when the launch last told. A GPU
    /// tells once in some dozen iterations.
    pub fn passes(&self) -> u64 {
        self.done.load(Ordering::Relaxed).max(0) as u64
    }

    /// Asks the launch to stop; where the program was given a [`Cancel`], all that have it. Returns at once:
    /// [`Pending::wait`] then returns [`Error::Cancelled`], or how the launch ended if it met its own end first. The arrays
    /// hold what an interrupted run left in them, and can be used again.
    ///
    /// A launch looks for the wish between iterations of loops, and inside parallel loops whose iterations have loops.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits for the end of the launch.
    pub fn wait(self) -> Result<Status> {
        drop(self.loan.until_ended());
        // `wait` takes the only `Pending` of its launch, so the status is still there.
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.take().unwrap_or(Ok(Status::Done))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.loan.lock().forgotten = true;
    }
}

/// How a launch ended, once it has.
type Outcome = Mutex<Option<Result<Status>>>;

/// A launch on its way; whatever happens to it, it gives back what it was lent.
struct Work {
    program: Arc<Program>,
    prepared: Prepared,
    status: Option<Result<Status>>,
    outcome: Arc<Outcome>,
    lent: Vec<Option<Arc<Buffer>>>,
    read: Vec<Arc<Buffer>>,
    loan: Arc<Loan>,
}

impl Drop for Work {
    fn drop(&mut self) {
        self.read.clear();
        // After `swap` the memory of one parameter is another's. A launch that did not run swapped nothing.
        let mut buffers = vec![None; self.lent.len()];
        for (param, buffer) in self.program.params.iter().zip(&mut buffers) {
            if let Param::Array(id) = param {
                let address = self.prepared.frame.arrays[id.index()].address;
                let found = self.lent.iter_mut().find(|b| b.as_ref().is_some_and(|b| b.address() == address));
                *buffer = found.and_then(Option::take);
            }
        }
        let mut state = self.loan.lock();
        // A wish that was granted is no failure.
        let failed = self.status.as_ref().and_then(|status| status.as_ref().err());
        let failed = failed.filter(|error| !matches!(error, Error::Cancelled { .. }));
        if let (true, Some(error)) = (state.forgotten, failed) {
            crate::warn(&format!("a launch that was not waited for failed: {error}"));
        }
        state.buffers = buffers;
        let status = self.status.take().unwrap_or_else(|| {
            Err(Error::launch(&self.program, "the thread of the launch could not run".to_string()))
        });
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
        state.ended = true;
        self.loan.end.notify_all();
    }
}

impl Compiled {
    /// Starts the program and returns at once; the arrays can be touched again at any time, which waits. So does this call
    /// where an earlier launch still writes one of them, or reads one that this one writes.
    pub fn launch_async(&self, args: Vec<Arg<'_>>) -> Result<Pending> {
        let prepared = self.prepare_start(&args)?;
        self.spawn(prepared, args)
    }

    /// Continues where the program yielded and returns at once; see [`Compiled::resume`].
    pub fn resume_async(&self, at: &Yielded, args: Vec<Arg<'_>>) -> Result<Pending> {
        let prepared = self.prepare_entry(at.clone(), &args)?;
        self.spawn(prepared, args)
    }

    fn spawn(&self, mut prepared: Prepared, args: Vec<Arg<'_>>) -> Result<Pending> {
        let program = self.program_handle();
        let (loan, outcome) = (Arc::<Loan>::default(), Arc::<Outcome>::default());
        let cancel = prepared.frame.cancel.get_or_insert_default().clone();
        let done = prepared.frame.done.clone();
        let (mut lent, mut read) = (vec![None; args.len()], Vec::new());
        for (k, (arg, param)) in args.into_iter().zip(&program.params).enumerate() {
            match (arg, param) {
                (Arg::Write(mut array), Param::Array(id))
                    if program.array(*id).role == Role::Param(Access::Write) =>
                {
                    lent[k] = array.buffer_mut().lend(&loan, k);
                }
                (Arg::Write(array), _) => read.push(array.buffer.share(&loan)),
                (Arg::Read(array), _) => read.push(array.buffer.share(&loan)),
                (Arg::Scalar(_), _) => {}
            }
        }
        let work = Work {
            program,
            prepared,
            status: None,
            outcome: outcome.clone(),
            lent,
            read,
            loan: loan.clone(),
        };
        let compiled = self.clone();
        // The thread belongs to the same part.
        let part = ir_parts::current();
        let spawned = std::thread::Builder::new().name("ebbtide-launch".to_string()).spawn(move || {
            let mut work = work;
            work.status = Some(ir_parts::within(part, || {
                let run = || compiled.execute(&mut work.prepared);
                parts::around(compiled.program(), run, parts::status_text)
            }));
        });
        match spawned {
            Ok(_) => Ok(Pending { loan, outcome, cancel, done }),
            Err(source) => {
                Err(Error::Io { what: "a thread for the launch could not be started".to_string(), source })
            }
        }
    }
}
