//! Compiled programs with the types of their parameters.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use ebbtide_ir as ir;
use ebbtide_runtime::{Arg, Cancel, Device, Error, Label, Next, Pending, Position, Result, Status, Yielded};

use crate::gradient::Gradient;
use crate::program::{AskedOfPrograms, Source, checked};

/// A program compiled for a device: takes the arguments that its source declares.
pub struct Compiled<P: Source> {
    untyped: ebbtide_runtime::Compiled,
    source: PhantomData<fn() -> P>,
}

impl<P: Source> Compiled<P> {
    pub(crate) fn new(untyped: ebbtide_runtime::Compiled) -> Compiled<P> {
        Compiled { untyped, source: PhantomData }
    }

    /// Derivatives are asked of programs: this is here so that rustc says so.
    #[doc(hidden)]
    pub fn grad<N>(&self, _: N) -> Result<Gradient<P>>
    where
        Compiled<P>: AskedOfPrograms,
    {
        Err(Error::NotAskedFor { name: String::new(), known: String::new() })
    }

    /// Runs the program from its beginning, to its end or to a yield.
    ///
    /// The arguments are the bare parameter if there is one, else the tuple in order.
    ///
    /// Of a program that can yield, or that calls another one, the result is a [`Status`]; of any other it is a
    /// [`Done`](crate::Done), which need not be looked at.
    pub fn launch(&self, args: P::Args<'_>) -> Result<P::Ended> {
        Ok(self.untyped.launch(self.arguments(args)?)?.into())
    }

    /// Continues where the program yielded: runs that region again, and what comes after it.
    ///
    /// The arguments may be others than before: the program continues with their elements, shapes and scalars.
    pub fn resume(&self, at: &Yielded, args: P::Args<'_>) -> Result<Status> {
        self.untyped.resume(at, self.arguments(args)?)
    }

    /// Runs the program from a label on, without a yield before it: every enclosing `for` starts at its first
    /// iteration, `while` and `loop` bodies are entered without asking their condition.
    pub fn resume_at(&self, label: impl Label, args: P::Args<'_>) -> Result<P::Ended> {
        Ok(self.untyped.resume_at(label, self.arguments(args)?)?.into())
    }

    /// Runs the program; after each yield `callback` repairs what must be repaired and says how to continue.
    ///
    /// The callback gets the arguments as they were given, behind a `&mut`: it may change the arrays, grow them, or
    /// give other scalars. It answers `()` to resume, or a [`Next`]. The status is [`Status::Yielded`] only if the
    /// answer was [`Next::Leave`].
    pub fn drive<'a, N: Into<Next>>(
        &self,
        mut args: P::Args<'a>,
        mut callback: impl FnMut(&Yielded, &mut P::Args<'a>) -> Result<N>,
    ) -> Result<Status> {
        let mut status = self.untyped.launch(self.arguments(P::reborrow(&mut args))?)?;
        while let Status::Yielded(at) = status {
            status = match callback(&at, &mut args)?.into() {
                Next::Resume => self.resume(&at, P::reborrow(&mut args))?,
                Next::To(label) => self.resume(&at.to(label)?, P::reborrow(&mut args))?,
                Next::Leave => return Ok(Status::Yielded(at)),
            };
        }
        Ok(status)
    }

    /// The same program, with launches that stop when `cancel` says so: from another thread, a signal handler, a button. They
    /// return an error then; the arrays hold what an interrupted run left in them, and can be used again. Nothing is
    /// compiled again. A single launch that the host does not wait for has [`Pending::cancel`].
    pub fn cancel_with(&self, cancel: &Cancel) -> Compiled<P> {
        Compiled::new(self.untyped.cancel_with(cancel))
    }

    /// Where a launch or a resume of this compiled program, or of a clone of it, last yielded; `None` if none has. It says
    /// where programs pause, to people who look at them; a launch's own yield is in its status.
    pub fn last_yield(&self) -> Option<Position> {
        self.untyped.last_yield()
    }

    /// Reads a [`Yielded`] of this program that [`Yielded::save`] wrote, in this process or another.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Yielded> {
        self.untyped.load(path)
    }

    /// Starts the program and returns at once; the arrays can be touched again at any time, which waits. So does this call
    /// where an earlier launch still writes one of them, or reads one that this one writes.
    pub fn launch_async(&self, args: P::Args<'_>) -> Result<Pending> {
        self.untyped.launch_async(self.arguments(args)?)
    }

    /// Continues where the program yielded and returns at once; see [`Compiled::resume`].
    pub fn resume_async(&self, at: &Yielded, args: P::Args<'_>) -> Result<Pending> {
        self.untyped.resume_async(at, self.arguments(args)?)
    }

    fn arguments<'a>(&self, args: P::Args<'a>) -> Result<Vec<Arg<'a>>> {
        checked::<P>(self.untyped.program(), P::arguments(args))
    }

    /// The bytes that the last launch left for the next one: its temporaries.
    pub fn held_bytes(&self) -> u64 {
        self.untyped.held_bytes()
    }

    /// Frees what the last launch left for the next one.
    pub fn release(&self) {
        self.untyped.release();
    }

    /// The generated source, where the device generates any.
    pub fn source(&self) -> Option<&str> {
        self.untyped.source()
    }

    /// The program in the form that devices run.
    pub fn ir(&self) -> &ir::Program {
        self.untyped.program()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.untyped.device()
    }

    /// The same compiled program without the types of its parameters.
    pub fn untyped(&self) -> &ebbtide_runtime::Compiled {
        &self.untyped
    }
}

impl<P: Source> Clone for Compiled<P> {
    fn clone(&self) -> Compiled<P> {
        Compiled::new(self.untyped.clone())
    }
}

impl<P: Source> fmt::Debug for Compiled<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiled({} for {:?})", P::NAME, self.device())
    }
}
