//! Boxes of indices, and the elements of arrays in them.

use std::ops::Range;

/// A box of global indices; in a ring they may lie outside of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region(pub Vec<Range<i64>>);

impl Region {
    pub fn is_empty(&self) -> bool {
        self.0.iter().any(Range::is_empty)
    }

    pub fn shifted(&self, by: &[i64]) -> Region {
        Region(self.0.iter().zip(by).map(|(range, by)| range.start + by..range.end + by).collect())
    }

    pub fn intersection(&self, other: &Region) -> Region {
        let both = self.0.iter().zip(&other.0);
        Region(both.map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect())
    }

    /// The number of elements.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.iter().map(|range| (range.end - range.start).max(0) as usize).product()
    }
}

/// The bytes of the rows of a region of a local array, first to last.
///
/// `shape` are the extents of the array, those of the grid first; `region` is in local indices; `size` is the number of bytes
/// of an element of the grid, all further dimensions included.
pub(crate) fn rows(shape: &[usize], region: &Region, size: usize) -> Vec<Range<usize>> {
    if region.is_empty() {
        return Vec::new();
    }
    let (last, outer) = match region.0.split_last() {
        Some(split) => split,
        None => return Vec::new(),
    };
    let mut starts = vec![0usize];
    for (range, extent) in outer.iter().zip(shape) {
        starts = starts
            .iter()
            .flat_map(|start| range.clone().map(move |index| start * extent + index as usize))
            .collect();
    }
    let width = shape[outer.len()];
    let row = |start: usize| {
        let first = (start * width + last.start as usize) * size;
        first..first + (last.end - last.start) as usize * size
    };
    starts.into_iter().map(row).collect()
}
