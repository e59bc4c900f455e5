//! Rows, slabs and ranges of arrays as arguments: `step(x[[t, ..]])`, `step(x[a..b])`.

use ebbtide_ir::ValueId;

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Borrow, Shaped};
use crate::scalar::Item;
use crate::value::Expr;

/// What has parts with `K` leading indices fixed and `M` dimensions left.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no part with {K} indices and {M} times `..`",
    label = "indexed with {K} indices and {M} times `..`",
    note = "a part of an array of rank 2 is `x[[i, ..]]`, of rank 3 `x[[i, .., ..]]` or `x[[i, j, ..]]`: indices first, then \
            one `..` for each other dimension"
)]
pub trait Parted<const K: usize, const M: usize>: Copy {
    /// The handle of a part.
    type Part;

    /// The part with these leading indices.
    #[track_caller]
    fn part(self, cx: &Cx, index: [ValueId; K]) -> Self::Part;
}

macro_rules! parts {
    ($($rank:literal = $k:literal + $m:literal;)*) => {$(
        impl<T, B> Parted<$k, $m> for ArrayHandle<T, $rank, B> {
            type Part = ArrayHandle<T, $m, B>;

            #[track_caller]
            fn part(self, cx: &Cx, index: [ValueId; $k]) -> ArrayHandle<T, $m, B> {
                ArrayHandle::of_view(self.id, self.view.narrowed(cx, &index))
            }
        }
    )*};
}

parts! {
    2 = 1 + 1;
    3 = 1 + 2;
    3 = 2 + 1;
    4 = 1 + 3;
    4 = 2 + 2;
    4 = 3 + 1;
}

/// `array[[i, ..]]` as an argument.
#[track_caller]
pub fn part<H: Parted<K, M>, const K: usize, const M: usize>(
    cx: &Cx,
    index: [Expr<usize>; K],
    _rest: [(); M],
    array: H,
) -> H::Part {
    array.part(cx, index.map(|i| i.id))
}

/// `array[[a..b, ..]]` as an argument: a range of the first dimension.
#[track_caller]
pub fn ranged<T: Item, const R: usize, B: Borrow>(
    cx: &Cx,
    from: Option<Expr<usize>>,
    to: Option<Expr<usize>>,
    array: ArrayHandle<T, R, B>,
) -> ArrayHandle<T, R, B> {
    let extent = array.dim(cx, 0);
    let (from, to) = (from.unwrap_or_else(|| super::lit(cx, 0)), to.unwrap_or(extent));
    ArrayHandle::of_view(array.id, array.view.ranged(cx, from.id, to.id, extent.id))
}
