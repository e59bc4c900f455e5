//! The items that programs are written with, beside Rust's own syntax.
//!
//! Each is a function, so that it has documentation and a meaning outside programs too, and an empty type of the
//! same name that holds its expansion inside programs. Both are imported by one `use`.

use std::ops::{IndexMut, Range};

use ebbtide_ir::{Compare, ValueId};
use ebbtide_runtime::{Array, Result};

use crate::cx::{Cx, same_value};
use crate::handle::{Argument, ArrayHandle, Borrow, ByMut, ByRef, Indexed, OfRank, Shaped};
use crate::scalar::{Element, Float, Integer, Item, Scalar};
use crate::small::{Value, from_ids, ids};
use crate::value::{Expr, Same};
use crate::view::all_whole;

/// Marks a parallel loop: `for i in par(0..n) { … }`, `for (i, j) in par(0..n, 0..m) { … }`, up to four ranges.
///
/// The iterations run in any order or at once, so no two of them may touch the same element while one writes it
/// (a build error otherwise), unless all of them combine into it: `loss[[]] += x`, `a[k].min_assign(x)`. The order
/// of such sums is part of the program's meaning, the same on every device and for every number of threads;
/// [`#[relaxed]`](https://docs.rs/ebbtide) before the loop gives that up.
///
/// Outside programs it gives its range back.
pub fn par(range: Range<usize>) -> Range<usize> {
    range
}

/// Exchanges the names of two arrays of equal type and shape; no element moves.
///
/// At every exit of a program the caller's `u` shows what the program calls `u`. Outside programs it is
/// [`std::mem::swap`].
pub fn swap<T>(a: &mut T, b: &mut T) {
    std::mem::swap(a, b);
}

/// Inside programs: [`swap`](fn@swap).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum swap {}

impl swap {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Item, const R: usize>(
        a: impl Argument<ArrayHandle<T, R, ByMut>>,
        b: impl Argument<ArrayHandle<T, R, ByMut>>,
    ) {
        let cx = &Cx::current();
        let (a, b) = (a.pass(cx), b.pass(cx));
        if all_whole(cx, "swap", &[a.view, b.view]) {
            cx.emit(|builder| builder.swap(a.id, b.id));
        }
    }
}

/// `if condition { yes } else { no }`, both computed: the branch-free choice.
///
/// An arm that is not chosen contributes nothing to a derivative, so `select(x > 0.0, x.sqrt(), 0.0)` has a
/// derivative of zero, not NaN, for negative `x`.
pub fn select<T>(condition: bool, yes: T, no: T) -> T {
    if condition { yes } else { no }
}

/// Inside programs: [`select`](fn@select).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum select {}

impl select {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Value>(
        condition: impl Argument<Expr<bool>>,
        yes: impl Argument<Expr<T>>,
        no: impl Argument<Expr<T>>,
    ) -> Expr<T> {
        let cx = &Cx::current();
        let (condition, yes, no) = (condition.pass(cx), yes.pass(cx), no.pass(cx));
        let parts = ids(&yes).into_iter().zip(ids(&no));
        let all: Vec<_> = parts.map(|(yes, no)| cx.emit(|b| b.select(condition.id, yes, no))).collect();
        from_ids(&all)
    }
}

/// Gives every element of an array one value.
pub fn fill<T: Item, const R: usize>(array: &mut Array<T, R>, value: T) -> Result<()> {
    array.fill(value)
}

/// Inside programs: [`fill`](fn@fill).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum fill {}

impl fill {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Item, const R: usize>(
        array: impl Argument<ArrayHandle<T, R, ByMut>>,
        value: impl Argument<Expr<T>>,
    ) {
        let cx = &Cx::current();
        let (array, value) = (array.pass(cx), value.pass(cx));
        let all = ids(&value);
        let one = cx.emit(|b| all.windows(2).all(|pair| same_value(b.program(), pair[0], pair[1])));
        match all[..] {
            [value, ..] if one && array.view.is_whole() => cx.emit(|b| b.fill(array.id, value)),
            _ => {
                let index = begin_elements(cx, array);
                array.store_all(cx, index, &all);
                end_elements::<R>(cx);
            }
        }
    }
}

/// The beginning of a loop over the indices of an array: a parallel one, where it has dimensions.
#[track_caller]
fn begin_elements<T: Item, const R: usize, B: Borrow>(cx: &Cx, array: ArrayHandle<T, R, B>) -> [ValueId; R] {
    if R == 0 {
        return [ValueId::from_index(0); R];
    }
    let ranges: [(Expr<usize>, Expr<usize>); R] =
        std::array::from_fn(|k| (crate::emit::lit(cx, 0), array.dim(cx, k)));
    let names = ["i", "j", "k", "l"];
    crate::emit::begin_par(cx, std::array::from_fn::<_, R, _>(|k| names[k % 4]), ranges).map(|i| i.id)
}

#[track_caller]
fn end_elements<const R: usize>(cx: &Cx) {
    if R > 0 {
        crate::emit::end_par(cx);
    }
}

/// Copies all elements of one array to another of equal type and shape.
pub fn copy<T: Item, const R: usize>(from: &Array<T, R>, to: &mut Array<T, R>) -> Result<()> {
    to.copy_from(from)
}

/// Inside programs: [`copy`](fn@copy).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum copy {}

impl copy {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Item, const R: usize>(
        from: impl Argument<ArrayHandle<T, R, ByRef>>,
        to: impl Argument<ArrayHandle<T, R, ByMut>>,
    ) {
        let cx = &Cx::current();
        let (from, to) = (from.pass(cx), to.pass(cx));
        if from.view.is_whole() && to.view.is_whole() {
            return cx.emit(|b| b.copy(from.id, to.id));
        }
        for k in 0..R {
            let (here, there) = (from.dim(cx, k), to.dim(cx, k));
            cx.emit(|b| {
                let equal = b.compare(Compare::Eq, here.id, there.id);
                b.assert(equal, "`copy`: the shapes differ");
            });
        }
        let index = begin_elements(cx, to);
        let element = from.load(cx, index);
        to.store_all(cx, index, &ids(&element));
        end_elements::<R>(cx);
    }
}

/// `array[index] = value` in a parallel loop, where all indices differ: `scatter_unique(a, k[i] as usize, x)`, or
/// `scatter_unique(a, [r, c], x)`.
///
/// That no element is written twice in one run of the loop is checked at run time; if one is, the run error names
/// the array, the element and the line. Outside programs, and outside parallel loops, it is a plain assignment.
pub fn scatter_unique<A: IndexMut<I, Output = T> + ?Sized, I, T>(array: &mut A, index: I, value: T) {
    array[index] = value;
}

/// Inside programs: [`scatter_unique`](fn@scatter_unique).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum scatter_unique {}

impl scatter_unique {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<H: OfRank<K, Elem = T>, T: Element, B: Scalar + Same<T>, const K: usize>(
        index: [Expr<usize>; K],
        array: H,
        value: Expr<B>,
    ) {
        let cx = &Cx::current();
        array.store_unique(cx, index.map(|i| i.id), value.id);
    }
}

/// A uniform random number in [0, 1) from a seed and a counter, both integers.
///
/// It depends on the two alone (Philox), so a parallel loop draws from its index, a recomputed step draws the same
/// numbers, and every device draws the same ones.
pub fn rand<T: Float>(seed: impl Integer, index: impl Integer) -> T {
    crate::host::rand(seed.literal(), index.literal())
}

/// Inside programs: [`rand`](fn@rand).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum rand<T = f64> {
    #[doc(hidden)]
    __Never(std::convert::Infallible, std::marker::PhantomData<T>),
}

impl<T: Float> rand<T> {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<S: Integer, I: Integer>(
        seed: impl Argument<Expr<S>>,
        index: impl Argument<Expr<I>>,
    ) -> Expr<T> {
        let cx = &Cx::current();
        let seed = crate::emit::cast::<i64, S>(cx, seed.pass(cx));
        let index = crate::emit::cast::<i64, I>(cx, index.pass(cx));
        Expr::new(cx.emit(|b| b.rand(<T as Scalar>::TYPE, seed.id, index.id)))
    }
}

crate::never_yields! { swap fill copy scatter_unique select rand }
