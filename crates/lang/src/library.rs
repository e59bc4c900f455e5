//! Operations on whole arrays that programs call: [`scan`](fn@scan), [`compact`](fn@compact), and the products of
//! [`products`](crate::products).
//!
//! Each is a function, which outside programs runs a program of this one statement on its arrays' device, and an
//! empty type of the same name that holds its expansion inside programs.

use ebbtide_ir::{Access, ArrayId, Builder};
use ebbtide_runtime::{AnyArray, AnyMut, Arg, Array, Result};

pub use crate::products::{matmul, transposed};

use crate::cx::{Cx, Lines};
use crate::handle::{Argument, ArrayHandle, ByMut, ByRef};
use crate::scalar::{Element, Number};
use crate::view::all_whole;

/// Running sums: `out[i] = x[0] + … + x[i]`, added in this order. `out` has the length of `x` and is another array.
pub fn scan<T: Number + Element>(x: &Array<T, 1>, out: &mut Array<T, 1>) -> Result<()> {
    alone("scan", &[x.any()], &mut [out.any_mut()], |p, reads, writes| p.scan(reads[0], writes[0]))
}

/// Inside programs: [`scan`](fn@scan).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum scan {}

impl scan {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Number + Element>(
        x: impl Argument<ArrayHandle<T, 1, ByRef>>,
        out: impl Argument<ArrayHandle<T, 1, ByMut>>,
    ) {
        let cx = &Cx::current();
        let (x, out) = (x.pass(cx), out.pass(cx));
        if all_whole(cx, "scan", &[x.view, out.view]) {
            cx.emit(|b| b.scan(x.id, out.id));
        }
    }
}

/// What [`compact`](fn@compact) chooses by: `bool`, or a small integer that is not zero.
#[diagnostic::on_unimplemented(
    message = "`compact` cannot choose by `{Self}`",
    label = "elements of the flags are `{Self}`",
    note = "flags are `bool`, `i32` or `u32`: write a parallel loop that compares, as in `flags[i] = x[i] > 0.0;`"
)]
pub trait Choice: Element {}

impl Choice for bool {}
impl Choice for i32 {}
impl Choice for u32 {}

/// The indices of the elements of `flags` that are `true`, or not zero, in ascending order into `out`, and their number
/// into `count`.
///
/// `count` is the number of all of them, also where it is larger than the length of `out`: elements beyond its end are
/// not written, and a program can yield for a longer one.
pub fn compact<F: Choice>(
    flags: &Array<F, 1>,
    out: &mut Array<i32, 1>,
    count: &mut Array<i32, 0>,
) -> Result<()> {
    alone("compact", &[flags.any()], &mut [out.any_mut(), count.any_mut()], |p, reads, writes| {
        p.compact(reads[0], writes[0], writes[1])
    })
}

/// Inside programs: [`compact`](fn@compact).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum compact {}

impl compact {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<F: Choice>(
        flags: impl Argument<ArrayHandle<F, 1, ByRef>>,
        out: impl Argument<ArrayHandle<i32, 1, ByMut>>,
        count: impl Argument<ArrayHandle<i32, 0, ByMut>>,
    ) {
        let cx = &Cx::current();
        let (flags, out, count) = (flags.pass(cx), out.pass(cx), count.pass(cx));
        if all_whole(cx, "compact", &[flags.view, out.view, count.view]) {
            cx.emit(|b| b.compact(flags.id, out.id, count.id));
        }
    }
}

/// Runs a program of one statement on the device of the arrays.
pub(crate) fn alone(
    name: &str,
    reads: &[&AnyArray],
    writes: &mut [AnyMut<'_>],
    statement: impl FnOnce(&mut Builder, &[ArrayId], &[ArrayId]),
) -> Result<()> {
    run_alone(name, reads, writes, |reads, writes| Cx::current().emit(|b| statement(b, reads, writes)))
}

/// Runs a program of one call on the device of the arrays.
#[doc(hidden)]
pub fn run_alone(
    name: &str,
    reads: &[&AnyArray],
    writes: &mut [AnyMut<'_>],
    call: impl FnOnce(&[ArrayId], &[ArrayId]),
) -> Result<()> {
    let device = writes.first().map(|a| a.device()).or(reads.first().map(|a| a.device()));
    let Some(device) = device.cloned() else { return Ok(()) };
    let (program, _) = Cx::build(name, Lines::LeftOut, |cx| {
        let declare = |k: usize, array: &AnyArray, access: Access| {
            cx.emit(|b| b.array(&format!("array{k}"), array.ty(), array.shape().len(), access))
        };
        let first = reads.len();
        let read: Vec<ArrayId> = reads.iter().enumerate().map(|(k, a)| declare(k, a, Access::Read)).collect();
        let written: Vec<ArrayId> =
            writes.iter().enumerate().map(|(k, a)| declare(first + k, a, Access::Write)).collect();
        call(&read, &written);
    })?;
    let compiled = ebbtide_runtime::Compiled::new(&program, &device)?;
    let mut args: Vec<Arg<'_>> = reads.iter().map(|a| Arg::Read(a)).collect();
    args.extend(writes.iter_mut().map(|a| Arg::Write(a.reborrow())));
    // An operation of the library does not yield.
    compiled.launch(args).map(|_done| ())
}
