//! Custom operations.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Block, Rules};
use crate::syntax::types::{Literal, Type};

/// An argument of a custom operation, in host memory.
#[derive(Debug)]
pub enum HostArg<'a> {
    /// An array that is read.
    Read {
        /// The type of its elements.
        ty: Type,
        /// The extents.
        shape: &'a [i64],
        /// The elements, last dimension fastest, in the byte order of the machine.
        bytes: &'a [u8],
    },
    /// An array that is read and written.
    Write {
        /// The type of its elements.
        ty: Type,
        /// The extents.
        shape: &'a [i64],
        /// The elements, last dimension fastest, in the byte order of the machine.
        bytes: &'a mut [u8],
    },
    /// A scalar.
    Scalar(Literal),
}

/// What a custom operation does on the host: a pure function of its arguments, since it may be run again; what it
/// says in an error becomes part of the run error.
pub type HostFunction = Arc<dyn Fn(&mut [HostArg<'_>]) -> Result<(), String> + Send + Sync>;

/// A custom operation.
#[derive(Clone)]
pub struct Operation {
    /// Its name: the same operation has the same name in every process.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// Its derivatives.
    pub rules: Rules,
}

/// What a custom operation does.
#[derive(Clone)]
pub enum Work {
    /// A function of the host.
    Host(HostFunction),
    /// The body of a called program that brings its own derivatives; made by autodiff alone, which puts it back.
    Inline(Block),
}

impl Operation {
    /// Runs it on the host; a panic is an error like any other. Whatever it does, a `bool` in an array is 0 or 1 then.
    pub fn call(&self, args: &mut [HostArg<'_>]) -> Result<(), String> {
        let Work::Host(function) = &self.work else {
            return Err("it is the body of a program".to_string());
        };
        // It may exchange its arguments: it is given others, so that all that it could write is looked at afterwards.
        let mut lent: Vec<HostArg<'_>> = args.iter_mut().map(HostArg::reborrow).collect();
        let result = catch_unwind(AssertUnwindSafe(|| function(&mut lent))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("it panicked: {}", said.unwrap_or("with something that is no text")))
        });
        drop(lent);
        let no_bool = args.iter_mut().fold(None, |found, arg| arg.make_valid().or(found));
        match (result, no_bool) {
            (Ok(()), Some(byte)) => {
                Err(format!("it wrote {byte} into an array of `bool`, whose bytes are 0 or 1"))
            }
            (result, _) => result,
        }
    }
}

impl HostArg<'_> {
    /// The same argument, for a shorter time.
    fn reborrow(&mut self) -> HostArg<'_> {
        match self {
            HostArg::Read { ty, shape, bytes } => HostArg::Read { ty: *ty, shape, bytes },
            HostArg::Write { ty, shape, bytes } => HostArg::Write { ty: *ty, shape, bytes },
            HostArg::Scalar(literal) => HostArg::Scalar(*literal),
        }
    }

    /// Makes every element a value of its type; gives a byte that was none.
    fn make_valid(&mut self) -> Option<u8> {
        let HostArg::Write { ty: Type::Bool, bytes, .. } = self else { return None };
        let mut wrong = None;
        for byte in bytes.iter_mut().filter(|byte| **byte > 1) {
            wrong = Some(std::mem::replace(byte, 1));
        }
        wrong
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({})", self.name)
    }
}
