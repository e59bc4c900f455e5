//! Reductions: [`sum`](fn@sum), [`max`](fn@max) and [`min`](fn@min) over a range, and these, [`dot`](fn@dot) and
//! [`norm`](fn@norm) of whole arrays.
//!
//! Input: a range and a closure that reads, or arrays. Output: one value. Invariant: a sum over a range of `n` numbers is
//! taken in the order that law 8 gives a parallel loop of extent `n`, wherever it is computed: 16 lanes in each leaf, a tree
//! over the lanes, the leaves in order.

use std::array::from_fn;
use std::ops::{Add, Range};

use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{Binary, Combine, Compare, Literal, Type, ValueId};
use ebbtide_runtime::Array;

use crate::cx::Cx;
use crate::emit::{add, begin_for, constant_range, end_loop, index_literal, local, mul, set, sqrt};
use crate::handle::{Argument, ArrayHandle, ByRef, Indexed, Shaped};
use crate::scalar::{Element, Float, Number, Scalar};
use crate::value::{Expr, Readable};

/// The sum of `f(j)` over a range; zero over an empty one. Of an array, in programs: `sum(u)`.
///
/// Its order depends on the length of the range alone, so it is the same here, in programs and on every device.
pub fn sum<T: Number + Add<Output = T>>(range: Range<usize>, mut f: impl FnMut(usize) -> T) -> T {
    let start = host_literal::<T>(-0.0);
    let n = range.len();
    let size = Leaves::of(&[n as i64]).size as usize;
    let mut total = start;
    for leaf in 0..n.div_ceil(size) {
        let end = ((leaf + 1) * size).min(n);
        let mut lanes = [start; LANES];
        for j in leaf * size..end {
            lanes[j % LANES] = lanes[j % LANES] + f(range.start + j);
        }
        total = total + tree(lanes, |a, b| a + b);
    }
    host_literal::<T>(0.0) + total
}

/// The largest `f(j)` over a range, which is not empty. Of an array, in programs: `max(u)`.
///
/// # Panics
/// If the range is empty; in programs that is a run error.
pub fn max<T: Number>(range: Range<usize>, f: impl FnMut(usize) -> T) -> T {
    extreme(range, f, |best, value| best.max_assign(value))
}

/// The smallest `f(j)` over a range, which is not empty. Of an array, in programs: `min(u)`.
///
/// # Panics
/// If the range is empty; in programs that is a run error.
pub fn min<T: Number>(range: Range<usize>, f: impl FnMut(usize) -> T) -> T {
    extreme(range, f, |best, value| best.min_assign(value))
}

fn extreme<T: Number>(range: Range<usize>, f: impl FnMut(usize) -> T, keep: impl Fn(&mut T, T)) -> T {
    let mut values = range.map(f);
    let Some(mut best) = values.next() else { panic!("an empty range has no extreme") };
    values.for_each(|value| keep(&mut best, value));
    best
}

/// The sum of the products of elements.
///
/// # Panics
/// If the arrays differ in length; in programs that is a run error.
pub fn dot<T: Element + Number + Add<Output = T> + std::ops::Mul<Output = T>>(
    a: &Array<T, 1>,
    b: &Array<T, 1>,
) -> T {
    assert_eq!(a.len(), b.len(), "arrays of a dot product have one length");
    sum(0..a.len(), |k| a[k] * b[k])
}

/// The square root of the sum of the squares of elements.
pub fn norm<T: Float>(a: &Array<T, 1>) -> T {
    sum(0..a.len(), |k| a[k] * a[k]).sqrt()
}

fn host_literal<T: Scalar>(value: f64) -> T {
    match T::of_literal(Literal::of(T::TYPE, value)) {
        Some(value) => value,
        None => unreachable!("the literal has the type"),
    }
}

/// Lanes combined in a tree: 8, 4, 2, 1.
fn tree<V: Copy>(mut lanes: [V; LANES], mut combine: impl FnMut(V, V) -> V) -> V {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// `sum(from..to, |j| …)` inside programs.
#[track_caller]
pub fn sum_over<T: Number>(
    cx: &Cx,
    from: Expr<usize>,
    to: Expr<usize>,
    mut body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    let number = |value: f64| Expr::<T>::new(cx.emit(|b| b.literal(Literal::of(T::TYPE, value))));
    if let Some((first, end)) = constant_range(cx, from, to)
        && end.saturating_sub(first) <= LANES as i64
    {
        // One leaf with at most one term in each lane: an empty lane adds nothing.
        let mut lanes: [Option<Expr<T>>; LANES] = [None; LANES];
        for (lane, j) in lanes.iter_mut().zip(first..end) {
            *lane = Some(body(index_literal(cx, j)));
        }
        let whole = tree(lanes, |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(add(cx, a, b)),
            (one, None) | (None, one) => one,
        });
        return match whole {
            Some(whole) => add(cx, number(0.0), whole),
            None => number(0.0),
        };
    }
    if !cx.emit(|b| b.is_in_iteration()) {
        return sum_at_program_level(cx, from, to, body);
    }
    let total = local(cx, "total", number(0.0));
    let j = Expr::<usize>::new(cx.emit(|b| b.begin_sum("j", from.id, to.id, total.id)));
    cx.note_loop(j.id, from.id, to.id);
    let value = body(j);
    set(cx, &total, add(cx, total.read(cx), value));
    end_loop(cx);
    total.read(cx)
}

/// A sum at program level: a parallel loop into a temporary, which has the same order.
#[track_caller]
fn sum_at_program_level<T: Number>(
    cx: &Cx,
    from: Expr<usize>,
    to: Expr<usize>,
    mut body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    let held = if T::TYPE == Type::Index { Type::I64 } else { T::TYPE };
    let (result, j) = cx.emit(|b| {
        let name = format!("reduced_{}", b.program().arrays.len());
        (b.temp(&name, held, &[]), b.begin_par(&[("j", from.id, to.id)]))
    });
    // The builder gives one variable per range.
    let value = body(Expr::new(j[0]));
    cx.emit(|b| {
        let value = if T::TYPE == held { value.id } else { b.cast(value.id, held) };
        b.update(Combine::Add, result, &[], value);
        b.end_par();
        let sum = b.load(result, &[]);
        Expr::new(if T::TYPE == held { sum } else { b.cast(sum, T::TYPE) })
    })
}

/// `max(from..to, |j| …)` inside programs.
#[track_caller]
pub fn max_over<T: Number>(
    cx: &Cx,
    from: Expr<usize>,
    to: Expr<usize>,
    body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    extreme_over(cx, from, to, body, Combine::Max)
}

/// `min(from..to, |j| …)` inside programs.
#[track_caller]
pub fn min_over<T: Number>(
    cx: &Cx,
    from: Expr<usize>,
    to: Expr<usize>,
    body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    extreme_over(cx, from, to, body, Combine::Min)
}

#[track_caller]
fn extreme_over<T: Number>(
    cx: &Cx,
    from: Expr<usize>,
    to: Expr<usize>,
    mut body: impl FnMut(Expr<usize>) -> Expr<T>,
    how: Combine,
) -> Expr<T> {
    cx.emit(|b| {
        let some = b.compare(Compare::Lt, from.id, to.id);
        b.assert(some, "an empty range has no extreme");
    });
    let best = local(cx, "best", Expr::<T>::new(cx.emit(|b| b.literal(neutral(how, T::TYPE)))));
    let j = begin_for(cx, "j", from, to);
    let value = body(j);
    let old = best.read(cx);
    let op = if how == Combine::Max { Binary::Max } else { Binary::Min };
    set(cx, &best, Expr::<T>::new(cx.emit(|b| b.binary(op, old.id, value.id))));
    end_loop(cx);
    best.read(cx)
}

/// What an extreme begins with.
fn neutral(how: Combine, ty: Type) -> Literal {
    let largest = how == Combine::Min;
    match (ty, largest) {
        (Type::I32, true) => Literal::from(i32::MAX),
        (Type::I32, false) => Literal::from(i32::MIN),
        (Type::U32, true) => Literal::from(u32::MAX),
        (Type::I64, true) => Literal::from(i64::MAX),
        (Type::I64, false) => Literal::from(i64::MIN),
        (Type::Index, true) => Literal::index(i64::MAX),
        (Type::Index, false) => Literal::index(i64::MIN),
        (Type::U32 | Type::Bool, _) => Literal::zero(ty),
        (Type::F32 | Type::F64, _) => Literal::of(ty, f64::NAN),
    }
}

/// A reduction over all elements of an array, at program level: a parallel loop into a temporary.
#[track_caller]
fn over_elements<T: Element + Number, const R: usize>(
    cx: &Cx,
    arrays: &[ArrayHandle<T, R, ByRef>],
    how: Combine,
) -> Expr<T> {
    let Some(first) = arrays.first() else { return crate::emit::zero(cx) };
    let loaded = |cx: &Cx, index: [ValueId; R]| {
        let values = arrays.iter().map(|array| array.load(cx, index));
        values.reduce(|a, b| mul(cx, a, b)).unwrap_or_else(|| crate::emit::zero(cx))
    };
    if R == 0 {
        return loaded(cx, [ValueId::from_index(0); R]);
    }
    let extents: Vec<ValueId> = (0..R).map(|k| first.dim(cx, k).id).collect();
    for other in &arrays[1..] {
        for (k, extent) in extents.iter().enumerate() {
            let found = other.dim(cx, k);
            cx.emit(|b| {
                let equal = b.compare(Compare::Eq, *extent, found.id);
                b.assert(equal, "arrays of a dot product have one shape");
            });
        }
    }
    let result = cx.emit(|b| {
        let zero = b.literal(Literal::index(0));
        if how != Combine::Add {
            for extent in &extents {
                let some = b.compare(Compare::Gt, *extent, zero);
                b.assert(some, "an empty array has no extreme");
            }
        }
        let name = format!("reduced_{}", b.program().arrays.len());
        let result = b.temp(&name, <T as Scalar>::TYPE, &[]);
        if how != Combine::Add {
            let start = b.literal(neutral(how, <T as Scalar>::TYPE));
            b.fill(result, start);
        }
        result
    });
    let index = cx.emit(|b| {
        let zero = b.literal(Literal::index(0));
        let ranges: Vec<(&str, ValueId, ValueId)> = ["i", "j", "k", "l"]
            .into_iter()
            .zip(&extents)
            .map(|(name, extent)| (name, zero, *extent))
            .collect();
        b.begin_par(&ranges)
    });
    // The builder gives one variable per range.
    let value = loaded(cx, from_fn(|k| index[k]));
    cx.emit(|b| {
        b.update(how, result, &[], value.id);
        b.end_par();
    });
    Expr::new(cx.emit(|b| b.load(result, &[])))
}

macro_rules! of_arrays {
    ($($name:ident, $how:ident;)*) => {$(
        #[doc = concat!("Inside programs: [`", stringify!($name), "`](fn@", stringify!($name), ").")]
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<T: Element + Number, const R: usize>(
                array: impl Argument<ArrayHandle<T, R, ByRef>>,
            ) -> Expr<T> {
                let cx = &Cx::current();
                over_elements(cx, &[array.pass(cx)], Combine::$how)
            }
        }
    )*};
}

of_arrays! { sum, Add; max, Max; min, Min; }

/// Inside programs: [`dot`](fn@dot).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum dot {}

impl dot {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Element + Number, const R: usize>(
        a: impl Argument<ArrayHandle<T, R, ByRef>>,
        b: impl Argument<ArrayHandle<T, R, ByRef>>,
    ) -> Expr<T> {
        let cx = &Cx::current();
        over_elements(cx, &[a.pass(cx), b.pass(cx)], Combine::Add)
    }
}

/// Inside programs: [`norm`](fn@norm).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum norm {}

impl norm {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const R: usize>(array: impl Argument<ArrayHandle<T, R, ByRef>>) -> Expr<T> {
        let cx = &Cx::current();
        let array = array.pass(cx);
        sqrt(cx, over_elements(cx, &[array, array], Combine::Add))
    }
}
