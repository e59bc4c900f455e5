//! Reductions: [`sum`](fn@sum), [`max`](fn@max) and [`min`](fn@min) over a range, and these, [`dot`](fn@dot) and
//! [`norm`](fn@norm) of whole arrays.
//!
//! Input: a range and a closure that reads, or arrays. Output: one value. Invariant: a sum over a range of `n` numbers is
//! taken in the order that law 8 gives a parallel loop of extent `n`, wherever it is computed: 16 lanes in each leaf, a tree
//! over the lanes, the leaves in order.

use std::array::from_fn;
use std::ops::Add;

use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{ArrayId, Binary, Combine, Compare, Literal, Type, ValueId};
use ebbtide_runtime::Array;

use crate::cx::Cx;
use crate::emit::{begin_for, constant_range, end_loop, index_literal, length, local, set};
use crate::handle::{Argument, ArrayHandle, ByRef, Indexed, Shaped};
use crate::scalar::{Element, Float, Item, Number};
use crate::small::{Summand, Value, from_ids, ids, types, variables};
use crate::value::{Expr, Readable};

/// The sum of `f(j)` over a range, `0..n` or `(0..n).rev().step_by(2)`; zero over an empty one. Of an array, in programs: `sum(u)`.
///
/// Numbers are summed, and vectors, matrices, tuples and arrays of a fixed length, number by number. The order depends on the
/// length of the range alone, so it is the same here, in programs and on every device.
pub fn sum<T: Summand>(
    range: impl IntoIterator<Item = usize, IntoIter: ExactSizeIterator>,
    f: impl FnMut(usize) -> T,
) -> T {
    let range = range.into_iter();
    let start = T::all(-0.0);
    let n = range.len();
    let mut terms = range.map(f);
    let size = Leaves::of(&[n as i64]).size as usize;
    let mut total = start;
    for leaf in 0..n.div_ceil(size) {
        let mut lanes = [start; LANES];
        for (j, term) in (leaf * size..).zip(terms.by_ref().take(size)) {
            lanes[j % LANES] = lanes[j % LANES].plus(term);
        }
        total = total.plus(tree(lanes, T::plus));
    }
    T::all(0.0).plus(total)
}

/// The largest `f(j)` over a range, which is not empty. Of an array, in programs: `max(u)`.
///
/// # Panics
/// If the range is empty; in programs that is a run error.
pub fn max<T: Number>(range: impl IntoIterator<Item = usize>, f: impl FnMut(usize) -> T) -> T {
    extreme(range, f, |best, value| best.max_assign(value))
}

/// The smallest `f(j)` over a range, which is not empty. Of an array, in programs: `min(u)`.
///
/// # Panics
/// If the range is empty; in programs that is a run error.
pub fn min<T: Number>(range: impl IntoIterator<Item = usize>, f: impl FnMut(usize) -> T) -> T {
    extreme(range, f, |best, value| best.min_assign(value))
}

fn extreme<T: Number>(
    range: impl IntoIterator<Item = usize>,
    f: impl FnMut(usize) -> T,
    keep: impl Fn(&mut T, T),
) -> T {
    let mut values = range.into_iter().map(f);
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

/// The square root of the sum of the squares of elements. Its derivative is zero where it is zero (law 13).
pub fn norm<T: Float>(a: &Array<T, 1>) -> T {
    sum(0..a.len(), |k| a[k] * a[k]).sqrt()
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

/// Both number by number, combined.
#[track_caller]
fn by_parts<T: Value>(cx: &Cx, op: Binary, a: Expr<T>, b: Expr<T>) -> Expr<T> {
    let mut all = Vec::new();
    // A loop and not an iterator: the place in the source is the caller's, which a closure does not pass on.
    for (a, b) in ids(&a).into_iter().zip(ids(&b)) {
        all.push(cx.emit(|builder| builder.binary(op, a, b)));
    }
    from_ids(&all)
}

/// `sum(from..to, |name| …)` inside programs.
#[track_caller]
pub fn sum_over<T: Summand>(
    cx: &Cx,
    name: &str,
    from: Expr<usize>,
    to: Expr<usize>,
    mut body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    if let Some((first, end)) = constant_range(cx, from, to)
        && end.saturating_sub(first) <= LANES as i64
    {
        // One leaf with at most one term in each lane: an empty lane adds nothing.
        let mut lanes: [Option<Expr<T>>; LANES] = [None; LANES];
        for (lane, j) in lanes.iter_mut().zip(first..end) {
            *lane = Some(body(index_literal(cx, j)));
        }
        let whole = tree(lanes, |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(by_parts(cx, Binary::Add, a, b)),
            (one, None) | (None, one) => one,
        });
        let zero = crate::emit::zero(cx);
        return whole.map_or(zero, |whole| by_parts(cx, Binary::Add, zero, whole));
    }
    if !cx.emit(|b| b.is_in_iteration()) {
        return sum_at_program_level(cx, name, from, to, body);
    }
    let total = local(cx, "total", crate::emit::zero::<T>(cx));
    let j = Expr::<usize>::new(cx.emit(|b| b.begin_sum(name, from.id, to.id, variables(&total))));
    cx.note_loop(j.id, from.id, to.id);
    let value = body(j);
    set(cx, &total, by_parts(cx, Binary::Add, total.read(cx), value));
    end_loop(cx);
    total.read(cx)
}

/// A sum at program level: a parallel loop into temporaries, one for each number, which has the same order.
#[track_caller]
fn sum_at_program_level<T: Summand>(
    cx: &Cx,
    name: &str,
    from: Expr<usize>,
    to: Expr<usize>,
    mut body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    let held = |ty: Type| if ty == Type::Index { Type::I64 } else { ty };
    let results = temporaries(cx, types::<T>().into_iter().map(held));
    let j = cx.emit(|b| b.begin_par(&[(name, from.id, to.id)]));
    // The builder gives one variable per range.
    let value = body(Expr::new(j[0]));
    cx.emit(|b| {
        for ((value, ty), result) in ids(&value).into_iter().zip(types::<T>()).zip(&results) {
            let value = if ty == held(ty) { value } else { b.cast(value, held(ty)) };
            b.update(Combine::Add, *result, &[], value);
        }
        b.end_par();
        let sums = types::<T>().into_iter().zip(&results).map(|(ty, result)| {
            let sum = b.load(*result, &[]);
            if ty == held(ty) { sum } else { b.cast(sum, ty) }
        });
        from_ids(&sums.collect::<Vec<_>>())
    })
}

/// Zeros of these types, each an array of rank 0.
#[track_caller]
fn temporaries(cx: &Cx, types: impl Iterator<Item = Type>) -> Vec<ArrayId> {
    cx.emit(|b| {
        let temporary = |ty| {
            let name = format!("reduced_{}", b.program().arrays.len());
            b.temp(&name, ty, &[])
        };
        types.map(temporary).collect()
    })
}

/// `max(from..to, |name| …)` inside programs.
#[track_caller]
pub fn max_over<T: Number>(
    cx: &Cx,
    name: &str,
    from: Expr<usize>,
    to: Expr<usize>,
    body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    extreme_over(cx, name, from, to, body, Combine::Max)
}

/// `min(from..to, |name| …)` inside programs.
#[track_caller]
pub fn min_over<T: Number>(
    cx: &Cx,
    name: &str,
    from: Expr<usize>,
    to: Expr<usize>,
    body: impl FnMut(Expr<usize>) -> Expr<T>,
) -> Expr<T> {
    extreme_over(cx, name, from, to, body, Combine::Min)
}

#[track_caller]
fn extreme_over<T: Number>(
    cx: &Cx,
    name: &str,
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
    let j = begin_for(cx, name, from, to);
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

/// A reduction over all elements of arrays of one shape, at program level: a parallel loop into temporaries. `term` makes what
/// is combined of the elements at one index.
#[track_caller]
fn over_elements<T: Item, V: Value, const R: usize>(
    cx: &Cx,
    arrays: &[ArrayHandle<T, R, ByRef>],
    how: Combine,
    term: impl Fn(&[Expr<T>]) -> Expr<V>,
) -> Expr<V> {
    let Some(first) = arrays.first() else { return crate::emit::zero(cx) };
    let loaded = |index: [ValueId; R]| {
        let elements: Vec<Expr<T>> = arrays.iter().map(|array| array.load(cx, index)).collect();
        term(&elements)
    };
    if R == 0 {
        return loaded([ValueId::from_index(0); R]);
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
    if how != Combine::Add {
        cx.emit(|b| {
            let zero = b.literal(Literal::index(0));
            for extent in &extents {
                let some = b.compare(Compare::Gt, *extent, zero);
                b.assert(some, "an empty array has no extreme");
            }
        });
    }
    let results = temporaries(cx, types::<V>().into_iter());
    if how != Combine::Add {
        for (result, ty) in results.iter().zip(types::<V>()) {
            cx.emit(|b| {
                let start = b.literal(neutral(how, ty));
                b.fill(*result, start);
            });
        }
    }
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
    let value = loaded(from_fn(|k| index[k]));
    cx.emit(|b| {
        for (value, result) in ids(&value).into_iter().zip(&results) {
            b.update(how, *result, &[], value);
        }
        b.end_par();
        from_ids(&results.iter().map(|result| b.load(*result, &[])).collect::<Vec<_>>())
    })
}

/// The sum of the products of the numbers of two elements, added in order.
#[track_caller]
fn product<T: Item<Scalar: Element>>(cx: &Cx, a: Expr<T>, b: Expr<T>) -> Expr<T::Scalar> {
    let mut products = ids(&by_parts(cx, Binary::Mul, a, b)).into_iter();
    let first = products.next().unwrap_or(ValueId::from_index(0));
    Expr::new(products.fold(first, |sum, product| cx.emit(|b| b.binary(Binary::Add, sum, product))))
}

macro_rules! of_arrays {
    ($($name:ident, $how:ident, $bound:ident;)*) => {$(
        #[doc = concat!("Inside programs: [`", stringify!($name), "`](fn@", stringify!($name), ").")]
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<T: Item + $bound, const R: usize>(
                array: impl Argument<ArrayHandle<T, R, ByRef>>,
            ) -> Expr<T> {
                let cx = &Cx::current();
                over_elements(cx, &[array.pass(cx)], Combine::$how, |elements| elements[0])
            }
        }
    )*};
}

of_arrays! { sum, Add, Summand; max, Max, Number; min, Min, Number; }

/// Inside programs: [`dot`](fn@dot).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum dot {}

impl dot {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Item<Scalar: Element> + Summand, const R: usize>(
        a: impl Argument<ArrayHandle<T, R, ByRef>>,
        b: impl Argument<ArrayHandle<T, R, ByRef>>,
    ) -> Expr<T::Scalar> {
        let cx = &Cx::current();
        let arrays = [a.pass(cx), b.pass(cx)];
        over_elements(cx, &arrays, Combine::Add, |elements| product(cx, elements[0], elements[1]))
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
    pub fn __expand<T: Item<Scalar: Float>, const R: usize>(
        array: impl Argument<ArrayHandle<T, R, ByRef>>,
    ) -> Expr<T::Scalar> {
        let cx = &Cx::current();
        let array = array.pass(cx);
        length(
            cx,
            over_elements(cx, &[array, array], Combine::Add, |elements| {
                product(cx, elements[0], elements[1])
            }),
        )
    }
}

crate::never_yields! { sum max min dot norm }
