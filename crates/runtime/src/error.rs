//! What can go wrong between a program and a device.

use ebbtide_ir as ir;

use crate::size::{bytes as size, exact_bytes as exact_size};

use std::fmt;

/// Any error of programs, arrays and devices: a program could not be built, compiled, launched or run, an array or a device
/// not be had.
///
/// Its `Debug` form is its text: that is what `fn main() -> Result<..>` and `unwrap` print.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is not valid, or its run met a fault.
    #[error(transparent)]
    Program(#[from] ir::Error),
    /// Memory could not be had.
    #[error("{} of memory could not be allocated", size(*bytes as u64))]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// Data does not fit the shape asked for.
    #[error("{found} elements do not fill shape {shape:?}, which takes {needed}")]
    WrongLength {
        /// The shape.
        shape: Vec<usize>,
        /// What it takes.
        needed: usize,
        /// What was given.
        found: usize,
    },
    /// Bytes that are no elements of the type that was asked for.
    #[error("byte {at} is {byte}, which is no `{ty}`: a `bool` is 0 or 1")]
    NoElement {
        /// The type.
        ty: ir::Type,
        /// Which byte.
        at: usize,
        /// What it is.
        byte: u8,
    },
    /// Memory of one size where that of another is needed.
    #[error("{} are no state of an array of {}", size(*found as u64), size(*needed as u64))]
    WrongSize {
        /// What the array takes.
        needed: usize,
        /// What there was.
        found: usize,
    },
    /// A shape with more elements than memory can have.
    #[error("shape {shape:?} has more elements than fit in memory")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// Two arrays of different shapes where equal ones are needed.
    #[error("shapes {left:?} and {right:?} differ")]
    ShapesDiffer {
        /// One shape.
        left: Vec<usize>,
        /// The other.
        right: Vec<usize>,
    },
    /// The device that was asked for cannot be had on this machine.
    #[error("there is no {device} device here: {reason}")]
    NoDevice {
        /// The device.
        device: &'static str,
        /// What is missing.
        reason: String,
    },
    /// `EBBTIDE_DEVICE` names a device that does not exist.
    #[error("there is no device `{name}`: EBBTIDE_DEVICE can be `cuda`, `cpu` or `interpreter`")]
    UnknownDevice {
        /// What it says.
        name: String,
    },
    /// The device could not compile or load the program.
    #[error("the {device} device could not compile program `{program}`: {reason}")]
    Compile {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// The device did not do what it was asked for.
    #[error("the {device} device failed: {reason}")]
    Device {
        /// The device.
        device: String,
        /// What, and why.
        reason: String,
    },
    /// A file of a stored yield could not be read or written.
    #[error(transparent)]
    Snapshot(#[from] ebbtide_snapshot::Error),
    /// A file of saved arrays that does not fit what it is read into.
    #[error("{} cannot be loaded: {misfits}", path.display())]
    WrongFile {
        /// The file.
        path: std::path::PathBuf,
        /// What does not fit, one by one.
        misfits: String,
    },
    /// The program could not be differentiated.
    #[error(transparent)]
    Differentiation(#[from] ebbtide_autodiff::Error),
    /// The budget of a gradient run does not allow any plan.
    #[error(
        "launch error: gradient `{program}`: a budget of {} is too small: the least that works here is {}",
        size(*budget),
        exact_size(*minimum)
    )]
    BudgetTooSmall {
        /// The gradient program.
        program: String,
        /// The budget.
        budget: u64,
        /// The least that works.
        minimum: u64,
    },
    /// What a gradient run would take is more than there is.
    #[error(
        "launch error: gradient `{program}`: it takes {} of memory and {} are free: give it a smaller budget with \
         `.memory(..)`, or room on disk with `.disk(..)`",
        size(*needed),
        size(*free)
    )]
    DoesNotFit {
        /// The gradient program.
        program: String,
        /// What it takes.
        needed: u64,
        /// What is free.
        free: u64,
    },
    /// A state of a gradient run could not be written to disk or read back.
    #[error("run error: states on disk, in {}: {source}; {remedy}", dir.display())]
    Disk {
        /// The directory that was given.
        dir: std::path::PathBuf,
        /// What happened, and to which file.
        source: ebbtide_snapshot::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The host cancelled the launch before it had ended.
    #[error("run error: program `{program}`: cancelled")]
    Cancelled {
        /// The program.
        program: String,
    },
    /// A launch on the parts of a grid stopped on one of them, and so on all.
    #[error("run error: {0}")]
    Part(ir::parts::Stop),
    /// A piece of program yielded that was run without an eye on yields.
    #[error("a program yielded where it cannot be resumed")]
    UnexpectedYield,
    /// A region yielded in a differentiated run, and running it again on what it left is not what the run does.
    #[error(
        "run error: gradient `{program}`: region `{label}` yielded, and it may read what it has itself written to `{array}`: \
         a derivative runs it again on what it found, so its value would not be that of the program; write `undo` (or \
         `undo = [.., {array}]`) in its `#[checkpoint(..)]`"
    )]
    NotIdempotent {
        /// The program.
        program: String,
        /// The label of the region.
        label: String,
        /// The array.
        array: String,
    },
    /// What was run again did not give what it gave before.
    #[error(
        "run error: gradient `{program}`: {place}: running iterations again gave another state than before: an \
         operation in them is not a function of its inputs alone (a custom operation that keeps state, a `#[relaxed]` loop)"
    )]
    NotReproduced {
        /// The program.
        program: String,
        /// Where it was seen.
        place: String,
    },
    /// A gradient run could not be planned or driven.
    #[error("launch error: gradient `{program}`: {message}")]
    Plan {
        /// The gradient program.
        program: String,
        /// Why.
        message: String,
    },
    /// A derivative or value that was not asked for.
    #[error("`{name}` was not asked for, or with another type: this run was asked for {known}")]
    NotAskedFor {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// A struct of derivatives cannot be made.
    #[error(
        "a struct of derivatives has no value for its field `{field}`, which has `#[arrays(skip)]`: give its type a `Default`, or \
         ask for the members one by one, as in `out.get(step::w.pos)`"
    )]
    NoDefault {
        /// The field.
        field: String,
    },
    /// A file could not be read or written.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ebbtide_checkpoint::Error> for Error {
    fn from(error: ebbtide_checkpoint::Error) -> Self {
        Error::Snapshot(error.into())
    }
}

impl Error {
    /// What ended a run of a program.
    pub fn of_run(program: &ir::Program, fault: ir::Fault) -> Error {
        let program = program.name.clone();
        match fault {
            ir::Fault::Stopped => Error::Cancelled { program },
            fault => Error::Program(ir::Error::Run { program, fault }),
        }
    }

    /// A disk that failed a gradient run.
    pub(crate) fn disk(dir: &std::path::Path, source: ebbtide_snapshot::Error) -> Error {
        use ebbtide_snapshot::Error as Snapshot;
        let remedy = match &source {
            Snapshot::Io { source, .. }
                if matches!(
                    source.kind(),
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
                ) =>
            {
                "free room there, name another directory in `.disk(..)`, or give it fewer bytes"
            }
            Snapshot::Damaged { .. } => {
                "something changed the file while the run went on, or the disk is failing: launch again, elsewhere"
            }
            _ => {
                "`.disk(..)` takes a directory that can be written and read, and that nothing else changes during a run"
            }
        };
        Error::Disk { dir: dir.to_path_buf(), source, remedy }
    }

    pub(crate) fn launch(program: &ir::Program, message: String) -> Error {
        Error::Program(ir::Error::Launch { program: program.name.clone(), message })
    }
}

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
