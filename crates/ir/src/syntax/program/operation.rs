//! Custom operations, and programs and operations that bring their own derivatives.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Access, Block, Program};
use crate::syntax::error::Error;
use crate::syntax::ids::{ArrayId, ValueId};
use crate::syntax::types::{Literal, Type};

/// What a called program or operation gets for one of its parameters, structs taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An array, and what is done with it.
    Array(ArrayId, Access),
    /// A scalar.
    Scalar(ValueId),
}

/// A program that is a derivative of another one, built when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Builds it.
    pub build: fn() -> Result<Program, Error>,
    /// The derivatives that it brings itself.
    pub rules: fn() -> Rules,
}

/// The arguments that a program or operation writes for its derivatives alone, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved(u64);

impl Saved {
    /// Those at these positions; of a position beyond 63 it is not remembered.
    pub fn at(positions: impl IntoIterator<Item = usize>) -> Saved {
        let bit =
            |position: usize| u32::try_from(position).ok().and_then(|p| 1u64.checked_shl(p)).unwrap_or(0);
        Saved(positions.into_iter().fold(0, |all, position| all | bit(position)))
    }

    /// Is the argument at this position one of them?
    pub fn contains(self, position: usize) -> bool {
        position < 64 && self.0 >> position & 1 == 1
    }
}

/// The derivatives that a program or operation brings. Both take its parameters, as they are after the call and only
/// to be read, then one array more for each of its float arrays, in order, but for saved ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Adds to the cotangents of arrays that the operation reads, and turns those of arrays that it writes from
    /// cotangents of what it left there into cotangents of what it found there.
    pub adjoint: Option<Rule>,
    /// Turns tangents of what was found in written arrays into tangents of what was left there.
    pub tangent: Option<Rule>,
    /// What it saves for them: constants for everyone else.
    pub saved: Saved,
}

impl Rules {
    /// No derivatives.
    pub fn none() -> Rules {
        Rules::default()
    }

    /// Does it bring any?
    pub fn any(&self) -> bool {
        self.adjoint.is_some() || self.tangent.is_some()
    }
}

/// A call of a program that brings its own derivatives: what it was called with.
#[derive(Clone, Debug)]
pub struct Ruled {
    /// The arguments, in order.
    pub arguments: Vec<Bound>,
    /// The derivatives.
    pub rules: Rules,
}

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

impl Bound {
    /// The array, if it is one.
    pub fn array(self) -> Option<ArrayId> {
        match self {
            Bound::Array(array, _) => Some(array),
            Bound::Scalar(_) => None,
        }
    }

    /// The scalar, if it is one.
    pub fn scalar(self) -> Option<ValueId> {
        match self {
            Bound::Array(..) => None,
            Bound::Scalar(value) => Some(value),
        }
    }
}
