//! Custom operations and rules: what `#[operation]` and `#[program(adjoint = …)]` emit.

use std::fmt::Display;

use ebbtide_ir::{self as ir, HostArg, Rule};
use ebbtide_runtime::{Array, HostView, HostViewMut};

use crate::cx::{Cx, Lines};
use crate::field::Arrays;
use crate::program::Source;
use crate::scalar::{Item, Scalar};

/// The program `P` as a derivative of another one.
pub fn rule<P: Source>() -> Rule {
    Rule { name: P::NAME, build: build::<P>, rules: P::rules }
}

fn build<P: Source>() -> Result<ir::Program, ir::Error> {
    Cx::build(P::NAME, Lines::LeftOut, P::build).map(|(program, _)| program)
}

/// What a custom operation takes by reference: arrays.
#[diagnostic::on_unimplemented(
    message = "an operation cannot take a `{Self}`",
    label = "not an array",
    note = "operations take arrays, `&Array1<f64>` or `&mut Array1<f64>`, and scalars; pass the arrays of a struct one by \
            one"
)]
pub trait HostArray: Arrays {
    /// What the operation sees of an array that it reads.
    type View<'a>;
    /// What the operation sees of an array that it writes.
    type ViewMut<'a>;

    /// The view that an argument is.
    fn view<'a>(arg: &'a HostArg<'_>) -> Option<Self::View<'a>>;
    /// The view that an argument is, to be written.
    fn view_mut<'a>(arg: &'a mut HostArg<'_>) -> Option<Self::ViewMut<'a>>;
}

impl<T: Item, const R: usize> HostArray for Array<T, R> {
    type View<'a> = HostView<'a, T, R>;
    type ViewMut<'a> = HostViewMut<'a, T, R>;

    fn view<'a>(arg: &'a HostArg<'_>) -> Option<HostView<'a, T, R>> {
        HostView::of(arg)
    }

    fn view_mut<'a>(arg: &'a mut HostArg<'_>) -> Option<HostViewMut<'a, T, R>> {
        HostViewMut::of(arg)
    }
}

/// The next argument of an operation, an array that it reads.
pub fn read<'a, A: HostArray>(arg: Option<&'a mut HostArg<'_>>) -> Result<A::View<'a>, String> {
    arg.and_then(|arg| A::view(arg)).ok_or_else(mismatch)
}

/// The next argument of an operation, an array that it writes.
pub fn write<'a, A: HostArray>(arg: Option<&'a mut HostArg<'_>>) -> Result<A::ViewMut<'a>, String> {
    arg.and_then(A::view_mut).ok_or_else(mismatch)
}

/// The next argument of an operation, a scalar.
pub fn scalar<T: Scalar>(arg: Option<&mut HostArg<'_>>) -> Result<T, String> {
    match arg {
        Some(HostArg::Scalar(literal)) => T::of_literal(*literal).ok_or_else(mismatch),
        _ => Err(mismatch()),
    }
}

fn mismatch() -> String {
    "its arguments are not what it was declared with: this is a flaw of Ebbtide".to_string()
}

/// What an operation can return: nothing, or whether it could do its work.
#[diagnostic::on_unimplemented(
    message = "an operation cannot return a `{Self}`",
    label = "not `()` and not a `Result<(), E>`",
    note = "results go into arrays that are `&mut`; what went wrong is a `Result<(), E>` whose error can be printed"
)]
pub trait HostResult {
    /// Whether it could do its work.
    fn outcome(self) -> Result<(), String>;
}

impl HostResult for () {
    fn outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Display> HostResult for Result<(), E> {
    fn outcome(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}
