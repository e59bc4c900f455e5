//! The order of reductions (law 8): how the iterations of a parallel loop are cut into leaves.

use crate::syntax::{OVERFLOW, Par, Range, ValueId};

/// The number of lanes of a leaf.
pub const LANES: usize = 16;

/// The least number of iterations that a leaf has where there are as many: as many as a block of a GPU has threads, which
/// compute the terms of a leaf side by side.
pub const LEAST: i64 = 1024;

/// A loop has at most this many leaves, so that their results fit in a fixed place, and that adding them one after the other
/// takes less time than the leaves.
pub const MOST: i64 = 1024;

/// The cut of an iteration space into leaves. It depends on the extents alone, never on threads.
///
/// A leaf is a run of whole outer rows where rows are short, or a piece of one row where they are long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// Outer rows: the product of all extents but the last.
    pub rows: i64,
    /// Rows per leaf, where rows are short; 1 where they are long.
    pub rows_per_leaf: i64,
    /// The extent of the last dimension.
    pub row: i64,
    /// Pieces per row: 1 where rows are short.
    pub pieces: i64,
    /// Iterations per piece, a multiple of [`LANES`].
    pub size: i64,
}

impl Leaves {
    /// The cut for these extents (negative ones count as zero).
    pub fn of(extents: &[i64]) -> Leaves {
        let row = extents.last().copied().unwrap_or(1).max(0);
        let rows = extents.iter().rev().skip(1).fold(1, |n: i64, e| n.saturating_mul((*e).max(0)));
        let lanes = LANES as i64;
        let share = rows.saturating_mul(row) / (MOST / 2) + 1;
        let size = share.max(LEAST).saturating_add(lanes - 1) / lanes * lanes;
        let mut cut = if row <= size {
            Leaves { rows, rows_per_leaf: (size / row.max(1)).max(1), row, pieces: 1, size }
        } else {
            Leaves { rows, rows_per_leaf: 1, row, pieces: ceil(row, size), size }
        };
        // Where there are more iterations than 64 bits count, the share of a leaf is too small: there are places for
        // `MOST` leaves all the same.
        if cut.pieces > 1 && rows > MOST / cut.pieces {
            (cut.pieces, cut.size) = (1, row);
        }
        if rows / cut.rows_per_leaf >= MOST {
            cut.rows_per_leaf = rows / (MOST / 2) + 1;
        }
        cut
    }

    /// The number of leaves.
    pub fn count(&self) -> i64 {
        if self.row == 0 {
            return 0;
        }
        ceil(self.rows, self.rows_per_leaf).saturating_mul(self.pieces)
    }

    /// The leaf that an iteration belongs to, by its row and its place in the row.
    pub fn leaf(&self, row: i64, place: i64) -> i64 {
        (row / self.rows_per_leaf) * self.pieces + place / self.size
    }
}

/// The most leaves that a parallel loop can have, where `value` knows what some of its bounds are before the program runs.
pub fn most_leaves(par: &Par, value: impl Fn(ValueId) -> Option<i64>) -> i64 {
    let known = |v| value(v).filter(|n| *n != OVERFLOW);
    let extent = |r: &Range| {
        let (from, to) = (known(r.from)?, known(r.to)?);
        Some(if to <= from { 0 } else { to.checked_sub(from).unwrap_or(i64::MAX) })
    };
    let extents: Option<Vec<i64>> = par.ranges.iter().map(extent).collect();
    extents.map_or(MOST, |extents| Leaves::of(&extents).count())
}

/// `a / b`, rounded up; neither is negative.
fn ceil(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_leaves_than_places_for_them() {
        for row in [1, 2, 100, 4095, 4096, 4097, 10_000, 1 << 20, 1 << 40] {
            for rows in [1, 2, 3, 1000, 4096, 1 << 20] {
                assert!(Leaves::of(&[rows, row]).count() <= MOST, "{rows} x {row}");
            }
        }
        let large = [1, 3, 1000, 1 << 20, 1 << 31, 1 << 32, 1 << 40, 1 << 53, 1 << 62, i64::MAX];
        for extents in large.iter().flat_map(|a| large.map(|b| [*a, b])) {
            assert!(Leaves::of(&extents).count() <= MOST, "{extents:?}");
        }
    }

    #[test]
    fn every_iteration_has_a_leaf_and_leaves_are_in_order() {
        for extents in [vec![0], vec![1], vec![5000], vec![3, 5], vec![4096, 3], vec![2, 9000], vec![7, 0, 3]]
        {
            let leaves = Leaves::of(&extents);
            let mut last = 0;
            for row in 0..leaves.rows {
                for place in 0..leaves.row {
                    let leaf = leaves.leaf(row, place);
                    assert!(leaf == last || leaf == last + 1, "{extents:?}");
                    last = leaf;
                }
            }
            let seen = if leaves.rows * leaves.row == 0 { 0 } else { last + 1 };
            assert_eq!(seen, leaves.count(), "{extents:?}");
        }
    }
}
