//! Compiled programs with the types of their parameters.

use std::fmt;
use std::marker::PhantomData;

use ebbtide_ir as ir;
use ebbtide_runtime::{Device, Result, Status};

use crate::program::Source;

/// A program compiled for a device: takes the arguments that its source declares.
pub struct Compiled<P: Source> {
    untyped: ebbtide_runtime::Compiled,
    source: PhantomData<fn() -> P>,
}

impl<P: Source> Compiled<P> {
    pub(crate) fn new(untyped: ebbtide_runtime::Compiled) -> Compiled<P> {
        Compiled { untyped, source: PhantomData }
    }

    /// Runs the program and waits for its end.
    ///
    /// The arguments are the bare parameter if there is one, else the tuple in order.
    pub fn launch(&self, args: P::Args<'_>) -> Result<Status> {
        self.untyped.launch(P::arguments(args))
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
