//! Elements of arrays, shapes, temporaries.

use ebbtide_ir::{Combine, ValueId};

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Borrow, Indexed, Shaped, Stored, Writable};
use crate::scalar::{Element, Number, Scalar};
use crate::small::{self, Value};
use crate::value::{Expr, Index, Same};

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
    array.store(cx, ids(index), &small::ids(&value), None);
}

/// `array[index] += value;`
#[track_caller]
pub fn add_to_element<H: Stored<K, Elem = T>, T: super::Add<T>, B: Value + Same<T>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    value: Expr<B>,
) {
    array.store(cx, ids(index), &small::ids(&value), Some(Combine::Add));
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
            array.store(cx, ids(index), &[value.id], Some(Combine::$combine));
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
pub fn temp<T: Element, B: Borrow, const R: usize>(
    cx: &Cx,
    name: &str,
    shape: [Expr<usize>; R],
) -> ArrayHandle<T, R, B> {
    ArrayHandle::new(cx.emit(|b| b.temp(name, <T as Scalar>::TYPE, &ids(shape))))
}
