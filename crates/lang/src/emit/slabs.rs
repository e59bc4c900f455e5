//! Rows and slabs of arrays as arguments: `step(x[[t, ..]])`.

use ebbtide_ir::ValueId;

use crate::cx::Cx;
use crate::handle::ArrayHandle;
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
    fn part(self, index: [ValueId; K]) -> Self::Part;
}

macro_rules! parts {
    ($($rank:literal = $k:literal + $m:literal;)*) => {$(
        impl<T, B> Parted<$k, $m> for ArrayHandle<T, $rank, B> {
            type Part = ArrayHandle<T, $m, B>;

            fn part(self, index: [ValueId; $k]) -> ArrayHandle<T, $m, B> {
                ArrayHandle::of_view(self.id, self.view.narrowed(&index))
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
pub fn part<H: Parted<K, M>, const K: usize, const M: usize>(
    _: &Cx,
    index: [Expr<usize>; K],
    _rest: [(); M],
    array: H,
) -> H::Part {
    array.part(index.map(|i| i.id))
}
