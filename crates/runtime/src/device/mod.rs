//! Devices: cheap handles on what runs programs.

pub(crate) mod counters;
pub(crate) mod frame;
pub(crate) mod interpreter;

use std::fmt;
use std::sync::Arc;

use ebbtide_ir::{ArrayId, Block, Facts, Outcome, Place, Program, Sharing, Stmt, ValueId, leaf, walk};

use crate::device::counters::Counters;
use crate::device::frame::Frame;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::device_memory::Memory;
use crate::memory::meter::Meter;

/// What a device must be able to do.
///
/// # Safety
///
/// Launches hand memory of safe Rust to what a back end compiles. Whoever implements it promises
/// - *Faithful code*: [`Backend::compile`] gives an executable of the very program, facts and segments that it is given;
/// - *One memory*: [`Backend::memory`] gives the same memory at every call, or always none, and executables compute there.
pub unsafe trait Backend: Send + Sync {
    /// Its name, as `EBBTIDE_DEVICE` takes it.
    fn name(&self) -> &str;

    /// Where its arrays live, if that is not the host's memory.
    fn memory(&self) -> Option<Arc<dyn Memory>> {
        None
    }

    /// Does it interpret programs? Then it prints the lines that they print.
    fn interprets(&self) -> bool {
        false
    }

    /// What it counts, if it counts.
    fn counters(&self) -> Option<&Counters> {
        None
    }

    /// The bytes that a run of this program needs besides its arrays: partial sums and the like. `value` knows what follows
    /// from the arguments of the run alone, `elements` how many elements an array has.
    fn scratch_bytes(
        &self,
        _program: &Program,
        _facts: &Facts,
        _value: &dyn Fn(ValueId) -> Option<i64>,
        _elements: &dyn Fn(ArrayId) -> u64,
    ) -> u64 {
        0
    }

    /// Compiles a verified program: `segments` are the blocks that will be run in one go each.
    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>>;
}

/// The bytes of partial sums that a run of compiled code keeps: the most reductions that a parallel loop has, times the
/// most leaves that one can have.
pub fn partial_sums(program: &Program, facts: &Facts, value: &dyn Fn(ValueId) -> Option<i64>) -> u64 {
    let (mut most, mut leaves) = (0, 0);
    walk(&program.body, &mut |stmt| {
        let Stmt::Par(par) = stmt else { return };
        let Some(facts) = facts.pars.get(&par.id) else { return };
        let mut sums = 0;
        walk(&par.body, &mut |inner| {
            if let Stmt::Update(_, s) = inner {
                sums += u64::from(facts.of(s) == Sharing::Reduce);
            }
        });
        most = most.max(sums);
        if sums > 0 {
            leaves = leaves.max(leaf::most_leaves(par, value));
        }
    });
    most * (leaves as u64 + 1) * size_of::<u64>() as u64
}

/// Where a segment begins to run.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// At its beginning.
    Beginning,
    /// At a region that yielded before.
    At(&'a Place),
}

/// A program compiled for a device.
///
/// # Safety
///
/// A [`Frame`] has the addresses of arrays that safe Rust owns or lent. Whoever implements this promises
/// - *Bounds*: no element outside an array, a place of a tape or a copy for undoing is touched, whatever the elements,
///   shapes and scalars are;
/// - *Exclusive access*: arrays that the program only reads are not written, and nothing is touched when
///   [`Executable::run`] or [`Executable::settle`] has returned;
/// - *Validity*: a `bool` that is written is 0 or 1;
/// - *Exchange*: when they return, addresses of arrays, and of places on tapes, are those that were there before, at most
///   exchanged between arrays and places of equal type and shape; shapes and numbers of bytes are unchanged.
pub unsafe trait Executable: Send + Sync {
    /// The generated source, where there is one.
    fn source(&self) -> Option<&str>;

    /// The arrays whose tapes it wants as [`TapePlaces::pieces`](crate::TapePlaces::pieces), places side by side, and not as a table of addresses. It
    /// exchanges no memory with them.
    fn packed_tapes(&self) -> &[ArrayId] {
        &[]
    }

    /// Runs one segment on a frame, and waits for its end.
    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome>;

    /// Runs one segment that cannot yield, from its beginning, after all that was asked for before; the host need not
    /// wait for its end. Until [`Executable::settle`] only this executable looks at the frame's addresses,
    /// places and scalars; new places on tapes may be added, scalars set.
    fn enqueue(&self, segment: usize, frame: &mut Frame) -> Result<()> {
        match self.run(segment, frame, Start::Beginning)? {
            Outcome::Done => Ok(()),
            Outcome::Yielded { .. } => Err(Error::UnexpectedYield),
        }
    }

    /// What was asked for is on its way to the device when this returns: before its memory is asked for something, or
    /// memory that was used goes to another owner.
    fn submit(&self, _frame: &mut Frame) -> Result<()> {
        Ok(())
    }

    /// Waits for what was enqueued: the frame says then where everything is.
    fn settle(&self, _frame: &mut Frame) -> Result<()> {
        Ok(())
    }

    /// What these arrays hold is not read any more before it is written, after all that was asked for before. A device
    /// need not do anything; the interpreter overwrites it where a mode asks for that.
    fn forget(&self, _frame: &mut Frame, _arrays: &[ArrayId]) {}

    /// Copies arrays to buffers of their size, after all that was asked for before.
    fn store(&self, frame: &mut Frame, arrays: &[ArrayId], to: &mut [Buffer]) -> Result<()> {
        arrays.iter().zip(to).try_for_each(|(array, buffer)| frame.copy_to(*array, buffer))
    }

    /// Copies buffers to arrays of their size, after all that was asked for before.
    fn load(&self, frame: &mut Frame, arrays: &[ArrayId], from: &[Buffer]) -> Result<()> {
        arrays.iter().zip(from).try_for_each(|(array, buffer)| frame.copy_from(*array, buffer))
    }
}

/// A handle on a device; clones are handles on the same one.
#[derive(Clone)]
pub struct Device {
    backend: Arc<dyn Backend>,
    meters: Arc<Meters>,
}

/// What counts the memory of a device.
struct Meters {
    own: Arc<Meter>,
    /// Of pinned memory of the host.
    pinned: Arc<Meter>,
}

impl Device {
    /// A device on this back end.
    pub fn new(backend: Arc<dyn Backend>) -> Device {
        crate::trace::begin();
        let own = Arc::new(Meter::of(backend.memory()));
        Device { backend, meters: Arc::new(Meters { own, pinned: Arc::default() }) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.backend.name()
    }

    /// The back end.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Counts the memory that the arrays of this device hold.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meters.own
    }

    /// Counts the pinned memory of the host in which gradient runs keep states beyond the memory of this device.
    pub fn host_meter(&self) -> &Arc<Meter> {
        &self.meters.pinned
    }

    /// The bytes of its memory that can still be had; a cautious guess where the system says nothing.
    pub(crate) fn free_bytes(&self) -> u64 {
        let own = self.backend.memory().and_then(|memory| memory.free_bytes());
        let free = own.unwrap_or_else(|| ebbtide_snapshot::free_memory().unwrap_or(2 << 30));
        free.min(self.meter().limit().saturating_sub(self.meter().live()))
    }

    /// Is it the same device?
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}
