//! Elements of arrays, shapes, temporaries.

use ebbtide_ir::{Binary, Combine, Literal, ValueId};

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Arrays, Borrow, Indexed, Shaped, Writable};
use crate::scalar::{Element, Number, Scalar};
use crate::value::{Expr, Index, Same};

/// The next parameters of the program: an array, or the arrays and scalars of a struct.
pub fn declare<A: Arrays, B: Borrow>(cx: &Cx, name: &str) -> A::Handle<B> {
    A::declare(cx, name)
}

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
pub fn load<H: Indexed<K, Elem = T>, T: Element, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
) -> Expr<T> {
    Expr::new(cx.emit(|b| b.load(array.array(), &ids(index))))
}

/// `array[index] = value;`
#[track_caller]
pub fn store<H: Indexed<K, Elem = T>, T: Element, B: Scalar + Same<T>, const K: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    array: H,
    value: Expr<B>,
) {
    cx.emit(|b| b.store(array.array(), &ids(index), value.id));
}

macro_rules! combine {
    ($($(#[$doc:meta])* $name:ident, $combine:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<H: Indexed<K, Elem = T>, T: Element + Number, B: Scalar + Same<T>, const K: usize>(
            cx: &Cx,
            index: [Expr<usize>; K],
            array: H,
            value: Expr<B>,
        ) {
            cx.emit(|b| b.update(Combine::$combine, array.array(), &ids(index), value.id));
        }
    )*};
}

combine! {
    /// `array[index] += value;`
    add_to_element, Add;
    /// `array[index].min_assign(value);`
    min_into_element, Min;
    /// `array[index].max_assign(value);`
    max_into_element, Max;
}

/// `array.dim(k)`.
#[track_caller]
pub fn dim<H: Shaped>(cx: &Cx, array: H, k: usize) -> Expr<usize> {
    Expr::new(cx.emit(|b| b.dim(array.array(), k)))
}

/// `array.len()`: the number of elements.
#[track_caller]
pub fn len<H: Shaped>(cx: &Cx, array: H) -> Expr<usize> {
    Expr::new(cx.emit(|b| {
        let extents: Vec<ValueId> = (0..H::RANK).map(|k| b.dim(array.array(), k)).collect();
        let product = extents.into_iter().reduce(|a, e| b.binary(Binary::Mul, a, e));
        product.unwrap_or_else(|| b.literal(Literal::index(1)))
    }))
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
