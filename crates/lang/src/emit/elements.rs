//! Elements of arrays, shapes, temporaries.

use ebbtide_ir::{Binary, Combine, Literal, LocalId, Type, Unary, ValueId};

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Borrow, Indexed, Shaped, Stored, Writable};
use crate::scalar::{Item, Number, Scalar};
use crate::small::{self, Value};
use crate::value::{Expr, Index, Local, Same};

/// A value used as an index, a loop bound or an extent.
pub fn index<I: Index>(value: Expr<I>) -> Expr<usize> {
    Expr::new(value.id)
}

/// An array that is about to be written.
pub fn writable<H: Writable>(array: H) -> H {
    array
}

fn ids<const K: usize>(index: [Expr<usize>; K]) -> [ValueId; K] {
    index.map(|i| i.id)
}

// Indices come before arrays: their number is then known first, and rustc blames the array whose rank differs.

/// `array[index]`.
#[track_caller]
pub fn load<H: Indexed<K, Elem = T>, T: Value, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
) -> Expr<T> {
    array.load(cx, ids(index))
}

/// `array[index] = value;`
#[track_caller]
pub fn store<H: Stored<K, Elem = T>, T: Value, B: Value + Same<T>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &all_parts::<T>(), &small::ids(&value), None);
}

/// The numbers of the scalars of a value.
fn all_parts<T: Value>() -> Vec<usize> {
    (0..small::types::<T>().len()).collect()
}

/// The numbers of the scalars of a part of a value: `part` takes it from a variable whose scalars have their numbers as names.
fn numbers_of<T: Value, U: Value>(part: impl FnOnce(Local<T>) -> Local<U>) -> Vec<usize> {
    let mut next = 0..;
    let whole = T::locals(&mut |_| LocalId::from_index(next.next().unwrap_or(0)));
    small::variables(&part(Local::new(whole))).into_iter().map(|local| local.index()).collect()
}

/// `array[index].part = value;`, or `+=`.
#[track_caller]
pub fn store_part<H: Stored<K, Elem = T>, T: Value, U: Value, B: Value + Same<U>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    part: impl FnOnce(Local<T>) -> Local<U>,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &numbers_of(part), &small::ids(&value), None);
}

/// `array[index].part += value;`
#[track_caller]
pub fn add_to_part<H: Stored<K, Elem = T>, T: Value, U: super::Add<U>, B: Value + Same<U>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    part: impl FnOnce(Local<T>) -> Local<U>,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &numbers_of(part), &small::ids(&value), Some(Combine::Add));
}

/// `array[index][item] = value;`
#[track_caller]
pub fn store_item<H, T, S, B, const K: usize, const M: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    item: [Expr<usize>; M],
    array: H,
    value: Expr<B>,
) where
    H: Stored<K, Elem = T>,
    T: Value,
    Expr<T>: Indexed<M, Elem = S>,
    S: Value,
    B: Value + Same<S>,
{
    array.store_item(cx, ids(index), &ids(item), &small::ids(&value), None);
}

/// `array[index][item] += value;`
#[track_caller]
pub fn add_to_item<H, T, S, B, const K: usize, const M: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    item: [Expr<usize>; M],
    array: H,
    value: Expr<B>,
) where
    H: Stored<K, Elem = T>,
    T: Value,
    Expr<T>: Indexed<M, Elem = S>,
    S: super::Add<S>,
    B: Value + Same<S>,
{
    array.store_item(cx, ids(index), &ids(item), &small::ids(&value), Some(Combine::Add));
}

/// `array[index] += value;`
#[track_caller]
pub fn add_to_element<H: Stored<K, Elem = T>, T: super::Add<T>, B: Value + Same<T>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &all_parts::<T>(), &small::ids(&value), Some(Combine::Add));
}

/// `array[index] -= value;`, which combines as `+=` of the negated value does: the two round alike.
#[track_caller]
pub fn subtract_from_element<H: Stored<K, Elem = T>, T: super::Sub<T>, B: Value + Same<T>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &all_parts::<T>(), &negated(cx, &value), Some(Combine::Add));
}

/// `array[index].part -= value;`
#[track_caller]
pub fn subtract_from_part<
    H: Stored<K, Elem = T>,
    T: Value,
    U: super::Sub<U>,
    B: Value + Same<U>,
    const K: usize,
>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    part: impl FnOnce(Local<T>) -> Local<U>,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &numbers_of(part), &negated(cx, &value), Some(Combine::Add));
}

/// `array[index][item] -= value;`
#[track_caller]
pub fn subtract_from_item<H, T, S, B, const K: usize, const M: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    item: [Expr<usize>; M],
    array: H,
    value: Expr<B>,
) where
    H: Stored<K, Elem = T>,
    T: Value,
    Expr<T>: Indexed<M, Elem = S>,
    S: super::Sub<S>,
    B: Value + Same<S>,
{
    array.store_item(cx, ids(index), &ids(item), &negated(cx, &value), Some(Combine::Add));
}

/// The scalars of a value with the sign exchanged; of unsigned ones what wraps to that.
#[track_caller]
fn negated<T: Value>(cx: &Cx, value: &Expr<T>) -> Vec<ValueId> {
    let mut all = Vec::new();
    // A loop and not an iterator: the place in the source is the caller's, which a closure does not pass on.
    for (id, ty) in small::ids(value).into_iter().zip(small::types::<T>()) {
        all.push(cx.emit(|b| match ty {
            Type::U32 => {
                let zero = b.literal(Literal::zero(ty));
                b.binary(Binary::Sub, zero, id)
            }
            _ => b.unary(Unary::Neg, id),
        }));
    }
    all
}

macro_rules! combine {
    ($($(#[$doc:meta])* $name:ident, $combine:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<H: Stored<K, Elem = T>, T: Number, B: Scalar + Same<T>, const K: usize>(
            cx: &Cx,
            index: [Expr<usize>; K],
            array: H,
            value: Expr<B>,
        ) {
            array.store(cx, ids(index), &[0], &[value.id], Some(Combine::$combine));
        }
    )*};
}

combine! {
    /// `array[index].min_assign(value);`
    min_into_element, Min;
    /// `array[index].max_assign(value);`
    max_into_element, Max;
}

/// `array.dim(k)`.
#[track_caller]
pub fn dim<H: Shaped>(cx: &Cx, array: H, k: usize) -> Expr<usize> {
    array.dim(cx, k)
}

/// `array.len()`: the number of elements.
#[track_caller]
pub fn len<H: Shaped>(cx: &Cx, array: H) -> Expr<usize> {
    array.len(cx)
}

/// `let mut name = Array…::zeros(shape);`
#[track_caller]
pub fn temp<T: Item, B: Borrow, const R: usize>(
    cx: &Cx,
    name: &str,
    shape: [Expr<usize>; R],
) -> ArrayHandle<T, R, B> {
    let ty = <T::Scalar as ebbtide_runtime::Element>::TYPE;
    ArrayHandle::new(cx.emit(|b| {
        let of_element = T::EXTENTS.iter().map(|extent| b.literal(Literal::index(*extent as i64)));
        let shape: Vec<ValueId> = ids(shape).into_iter().chain(of_element).collect();
        b.temp(name, ty, &shape)
    }))
}
