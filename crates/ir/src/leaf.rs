//! The order of reductions (law 8): how the iterations of a parallel loop are cut into leaves.

/// The number of lanes of a leaf.
pub const LANES: usize = 16;

/// The number of iterations that a leaf has where rows allow it.
pub const SIZE: i64 = 4096;

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
}

impl Leaves {
    /// The cut for these extents (negative ones count as zero).
    pub fn of(extents: &[i64]) -> Leaves {
        let row = extents.last().copied().unwrap_or(1).max(0);
        let rows = extents.iter().rev().skip(1).fold(1, |n: i64, e| n.saturating_mul((*e).max(0)));
        if row <= SIZE {
            Leaves { rows, rows_per_leaf: (SIZE / row.max(1)).max(1), row, pieces: 1 }
        } else {
            Leaves { rows, rows_per_leaf: 1, row, pieces: (row + SIZE - 1) / SIZE }
        }
    }

    /// The number of leaves.
    pub fn count(&self) -> i64 {
        if self.row == 0 {
            return 0;
        }
        ((self.rows + self.rows_per_leaf - 1) / self.rows_per_leaf).saturating_mul(self.pieces)
    }

    /// The leaf that an iteration belongs to, by its row and its place in the row.
    pub fn leaf(&self, row: i64, place: i64) -> i64 {
        (row / self.rows_per_leaf) * self.pieces + place / SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
