//! Where a part lies in its grid, as programs see it.

use ebbtide::Arrays;

/// A part of a line. `at.begin + i - at.first` is the global index of element `i` of an array of the part.
#[derive(Arrays, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place1 {
    /// The global index of the first element that the part owns.
    pub begin: usize,
    /// The number of elements that it owns.
    pub count: usize,
    /// The index of the first of them in arrays of the part: the width of the halo.
    pub first: usize,
    /// The number of elements of the whole grid.
    pub extent: usize,
}

/// A part of a plane; each dimension as in [`Place1`].
#[derive(Arrays, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place2 {
    /// The first dimension.
    pub x: Place1,
    /// The second dimension.
    pub y: Place1,
}

/// A part of a volume; each dimension as in [`Place1`].
#[derive(Arrays, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place3 {
    /// The first dimension.
    pub x: Place1,
    /// The second dimension.
    pub y: Place1,
    /// The third dimension.
    pub z: Place1,
}
