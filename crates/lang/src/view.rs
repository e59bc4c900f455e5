//! Parts of arrays: rows and slabs, `x[[t, ..]]`, and ranges of them, `x[[t, a..b, ..]]`.
//!
//! Input: an array of a program that is being built, leading indices, and a range of the next one. Output: a handle, which a
//! called program uses like any other. Invariant: a handle stands for the elements of its array whose first indices are those
//! of its view, and whose next one is in its range. Called programs are expanded where they are called, so a view is a matter
//! of indices: nothing is copied, and the program that is built knows arrays and indices alone.

use ebbtide_ir::{ArrayId, Binary, Builder, Compare, Literal, Program, ValueId};

use crate::cx::{Cx, same_value};

/// The most indices that a view can fix.
const MOST: usize = 4;

/// An array, and the part of it that is meant.
pub type Part = (ArrayId, View);

/// The part of an array that a handle stands for.
#[derive(Clone, Copy, Debug)]
pub struct View {
    count: usize,
    indices: [ValueId; MOST],
    range: Option<Ranged>,
}

/// A range of the first index that is left.
#[derive(Clone, Copy, Debug)]
struct Ranged {
    start: ValueId,
    len: ValueId,
}

impl Ranged {
    /// The index in the array of an index in the range, which is checked: the array has elements beyond the range.
    #[track_caller]
    fn place(self, cx: &Cx, index: ValueId) -> ValueId {
        let within = cx.runs_within(index, self.len);
        cx.emit(|b| {
            if !within {
                let zero = b.literal(Literal::index(0));
                let (low, high) =
                    (b.compare(Compare::Ge, index, zero), b.compare(Compare::Lt, index, self.len));
                let inside = b.binary(Binary::And, low, high);
                b.assert(inside, "an index is outside the range of an array that was passed");
            }
            b.binary(Binary::Add, self.start, index)
        })
    }
}

impl View {
    /// The whole array.
    pub fn whole() -> View {
        View { count: 0, indices: [ValueId::from_index(0); MOST], range: None }
    }

    /// Is it the whole array?
    pub fn is_whole(&self) -> bool {
        self.count == 0 && self.range.is_none()
    }

    /// The number of indices that are fixed.
    pub fn fixed(&self) -> usize {
        self.count
    }

    fn indices(&self) -> &[ValueId] {
        &self.indices[..self.count]
    }

    /// The first extent, where it is not that of the array.
    pub fn extent(&self) -> Option<ValueId> {
        self.range.map(|range| range.len)
    }

    /// The index in the array of an index in the part.
    #[track_caller]
    pub fn place(&self, cx: &Cx, index: &[ValueId]) -> Vec<ValueId> {
        let mut all = self.indices().to_vec();
        for (k, index) in index.iter().enumerate() {
            all.push(match self.range {
                Some(range) if k == 0 => range.place(cx, *index),
                _ => *index,
            });
        }
        all
    }

    /// The index in the array of an index that is in the part.
    #[track_caller]
    pub(crate) fn place_within(&self, cx: &Cx, index: &[ValueId]) -> Vec<ValueId> {
        let mut all = self.indices().to_vec();
        all.extend_from_slice(index);
        if let (Some(range), Some(first)) = (self.range, all.get_mut(self.count)) {
            *first = cx.emit(|b| b.binary(Binary::Add, range.start, *first));
        }
        all
    }

    /// Dimension `k` of this part of an array.
    pub(crate) fn dim(&self, b: &mut Builder, array: ArrayId, k: usize) -> ValueId {
        match self.range {
            Some(range) if k == 0 => range.len,
            _ => b.dim(array, self.count + k),
        }
    }

    /// What is chosen of dimension `k` of the array: the first index and the first one after them; none where it is all of them.
    fn chosen(&self, b: &mut Builder, k: usize) -> Option<(ValueId, ValueId)> {
        if let Some(index) = self.indices().get(k) {
            let one = b.literal(Literal::index(1));
            return Some((*index, b.binary(Binary::Add, *index, one)));
        }
        let range = self.range.filter(|_| k == self.count)?;
        Some((range.start, b.binary(Binary::Add, range.start, range.len)))
    }

    /// Whether this part of an array and another part of it have no element in common; `None` where that is never so.
    pub(crate) fn is_apart(&self, other: &View, b: &mut Builder) -> Option<ValueId> {
        if self.is_same(other, b.program()) {
            return None;
        }
        let mut apart = None;
        for k in 0..=self.count.min(other.count) {
            let (Some(mine), Some(theirs)) = (self.chosen(b, k), other.chosen(b, k)) else { continue };
            let before = b.compare(Compare::Le, mine.1, theirs.0);
            let after = b.compare(Compare::Le, theirs.1, mine.0);
            let here = b.binary(Binary::Or, before, after);
            apart = Some(apart.map_or(here, |apart| b.binary(Binary::Or, apart, here)));
        }
        apart
    }

    /// Are the two the same part, as far as can be seen from how their indices are computed?
    pub fn is_same(&self, other: &View, program: &Program) -> bool {
        let range = |view: &View| view.range.map_or(Vec::new(), |range| vec![range.start, range.len]);
        let (mine, theirs) =
            ([self.indices(), &range(self)].concat(), [other.indices(), &range(other)].concat());
        let pairs = mine.iter().zip(&theirs);
        mine.len() == theirs.len()
            && self.count == other.count
            && pairs.into_iter().all(|(a, b)| same_value(program, *a, *b))
    }

    /// The part of this part with more leading indices.
    #[track_caller]
    pub(crate) fn narrowed(mut self, cx: &Cx, more: &[ValueId]) -> View {
        if more.is_empty() {
            return self;
        }
        let all = self.place(cx, more);
        self.count = all.len().min(MOST);
        self.indices[..self.count].copy_from_slice(&all[..self.count]);
        self.range = None;
        self
    }

    /// The part of this part whose first index is in a range; `extent` is that of the part now.
    #[track_caller]
    pub(crate) fn ranged(mut self, cx: &Cx, from: ValueId, to: ValueId, extent: ValueId) -> View {
        let outer = self.range.map(|range| range.start);
        self.range = Some(cx.emit(|b| {
            let zero = b.literal(Literal::index(0));
            let (low, ordered) = (b.compare(Compare::Ge, from, zero), b.compare(Compare::Le, from, to));
            let high = b.compare(Compare::Le, to, extent);
            let inside = b.binary(Binary::And, low, ordered);
            let inside = b.binary(Binary::And, inside, high);
            b.assert(inside, "a range of an array that is passed is outside the array");
            let len = b.binary(Binary::Sub, to, from);
            let start = outer.map_or(from, |outer| b.binary(Binary::Add, outer, from));
            Ranged { start, len }
        }));
        self
    }
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
