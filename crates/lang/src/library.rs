//! Operations on whole arrays that programs call: [`scan`](fn@scan), [`compact`](fn@compact), and the products of
//! [`products`](crate::products).
//!
//! Each is a function, which outside programs runs a program of this one statement on its arrays' device, and an
//! empty type of the same name that holds its expansion inside programs.

use ebbtide_ir::{Access, ArrayId, Binary, Builder, Compare, Literal, LocalId, Type, ValueId};
use ebbtide_runtime::{AnyArray, AnyMut, Arg, Array, Result};

pub use crate::products::{matmul, transposed};

use crate::cx::{Cx, Lines};
use crate::handle::{Argument, ArrayHandle, ByMut, ByRef};
use crate::scalar::{Element, Number};
use crate::shapes::{Fit, check, written_once};
use crate::view::Part;

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
        let (x, out) = (x.pass(cx).part(), out.pass(cx).part());
        match x.1.is_whole() && out.1.is_whole() {
            true => cx.emit(|b| b.scan(x.0, out.0)),
            false => scan_part(cx, x, out),
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
        let (flags, out, count) = (flags.pass(cx).part(), out.pass(cx).part(), count.pass(cx).part());
        match flags.1.is_whole() && out.1.is_whole() {
            true => cx.emit(|b| b.compact(flags.0, out.0, count.0)),
            false => compact_part(cx, flags, out, count),
        }
    }
}

/// One iteration of a parallel loop that runs through a part of an array: the length of the part, and the index in it.
#[track_caller]
fn begin_through(cx: &Cx, (array, view): Part, before: impl FnOnce(&mut Builder)) -> ValueId {
    cx.emit(|b| {
        let (zero, one) = (b.literal(Literal::index(0)), b.literal(Literal::index(1)));
        let n = view.dim(b, array, 0);
        b.begin_par(&[("once", zero, one)]);
        before(b);
        b.begin_for("i", zero, n)
    })
}

/// Running sums of a part of an array, or into one.
#[track_caller]
fn scan_part(cx: &Cx, x: Part, out: Part) {
    written_once(cx, "scan", out, &[x]);
    check(cx, "scan", "[n] and [n]", &[x, out], &[Fit::Equal((0, 0), (1, 0))]);
    let mut sum = LocalId::from_index(0);
    let i = begin_through(cx, x, |b| {
        // Adding to it changes no bit of the first element.
        let zero = b.literal(Literal::of(b.program().array(x.0).ty, -0.0));
        sum = b.local("sum", zero);
    });
    let (from, to) = (x.1.place_within(cx, &[i]), out.1.place_within(cx, &[i]));
    cx.emit(|b| {
        let element = b.load(x.0, &from);
        let before = b.get(sum);
        let after = b.binary(Binary::Add, before, element);
        b.set(sum, after);
        b.store(out.0, &to, after);
        b.end_loop(None);
        b.end_par();
    });
}

/// The indices of what is not zero in a part of an array, or into one.
#[track_caller]
fn compact_part(cx: &Cx, flags: Part, out: Part, count: Part) {
    written_once(cx, "compact", out, &[flags, count]);
    written_once(cx, "compact", count, &[flags]);
    let (mut found, mut room) = (LocalId::from_index(0), ValueId::from_index(0));
    let i = begin_through(cx, flags, |b| {
        let zero = b.literal(Literal::index(0));
        found = b.local("found", zero);
        room = out.1.dim(b, out.0, 0);
    });
    let from = flags.1.place_within(cx, &[i]);
    let at = cx.emit(|b| {
        let flag = b.load(flags.0, &from);
        let chosen = match b.program().array(flags.0).ty {
            Type::Bool => flag,
            ty => {
                let zero = b.literal(Literal::zero(ty));
                b.compare(Compare::Ne, flag, zero)
            }
        };
        b.begin_if(chosen);
        let at = b.get(found);
        let one = b.literal(Literal::index(1));
        let after = b.binary(Binary::Add, at, one);
        b.set(found, after);
        let fits = b.compare(Compare::Lt, at, room);
        b.begin_if(fits);
        at
    });
    let to = out.1.place_within(cx, &[at]);
    cx.emit(|b| {
        let number = b.cast(i, Type::I32);
        b.store(out.0, &to, number);
        b.end_if();
        b.end_if();
        b.end_loop(None);
        let all = b.get(found);
        let all = b.cast(all, Type::I32);
        b.store(count.0, &[], all);
        b.end_par();
    });
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

crate::never_yields! { scan compact }
