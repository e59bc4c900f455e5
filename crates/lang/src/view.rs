//! Parts of arrays: rows and slabs, `x[[t, ..]]`.
//!
//! Input: an array of a program that is being built, and leading indices. Output: a handle of lower rank, which a called
//! program uses like any other. Invariant: a handle stands for the elements of its array whose first indices are those of
//! its view. Called programs are expanded where they are called, so a view is a matter of indices: nothing is copied, and
//! the program that is built knows arrays and indices alone.

use ebbtide_ir::{Op, Program, ValueId};

use crate::cx::Cx;
use crate::handle::ArrayHandle;
use crate::value::Expr;

/// The most indices that a view can fix.
const MOST: usize = 4;

/// The leading indices of a part of an array; none for the whole array.
#[derive(Clone, Copy, Debug)]
pub struct View {
    count: usize,
    indices: [ValueId; MOST],
}

impl View {
    /// The whole array.
    pub fn whole() -> View {
        View { count: 0, indices: [ValueId::from_index(0); MOST] }
    }

    /// Is it the whole array?
    pub fn is_whole(&self) -> bool {
        self.count == 0
    }

    /// The fixed indices, outermost first.
    pub fn indices(&self) -> &[ValueId] {
        &self.indices[..self.count]
    }

    /// Do the two have the same indices, as far as can be seen from how they are computed?
    pub fn is_same(&self, other: &View, program: &Program) -> bool {
        let pairs = self.indices().iter().zip(other.indices());
        self.count == other.count && pairs.into_iter().all(|(a, b)| same_value(program, *a, *b))
    }

    /// The part of this part with more leading indices.
    fn narrowed(mut self, more: &[ValueId]) -> View {
        for (to, index) in self.indices[self.count..].iter_mut().zip(more) {
            *to = *index;
        }
        self.count = (self.count + more.len()).min(MOST);
        self
    }
}

/// Are the two computed in the same way from the same values?
pub(crate) fn same_value(program: &Program, a: ValueId, b: ValueId) -> bool {
    let mut work = vec![(a, b)];
    while let Some((a, b)) = work.pop() {
        if a == b {
            continue;
        }
        match (program.op(a), program.op(b)) {
            (Op::Literal(a), Op::Literal(b)) if a == b => {}
            (Op::Dim(a, j), Op::Dim(b, k)) if a == b && j == k => {}
            (Op::Binary(f, a1, a2), Op::Binary(g, b1, b2)) if f == g => work.extend([(*a1, *b1), (*a2, *b2)]),
            _ => return false,
        }
    }
    true
}

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

/// A flaw where an operation on whole arrays is given a part of one; `false` then.
#[track_caller]
pub(crate) fn all_whole(cx: &Cx, what: &str, views: &[View]) -> bool {
    let whole = views.iter().all(View::is_whole);
    if !whole {
        cx.emit(|b| {
            b.flaw(
                "2",
                format!("`{what}` takes whole arrays, here is a part of one: copy the part to a temporary"),
            );
        });
    }
    whole
}
