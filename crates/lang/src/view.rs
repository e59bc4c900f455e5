//! Parts of arrays: rows and slabs, `x[[t, ..]]`.
//!
//! Input: an array of a program that is being built, and leading indices. Output: a handle of lower rank, which a called
//! program uses like any other. Invariant: a handle stands for the elements of its array whose first indices are those of
//! its view. Called programs are expanded where they are called, so a view is a matter of indices: nothing is copied, and
//! the program that is built knows arrays and indices alone.

use ebbtide_ir::{Op, Program, ValueId};

use crate::cx::Cx;

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
    pub(crate) fn narrowed(mut self, more: &[ValueId]) -> View {
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
