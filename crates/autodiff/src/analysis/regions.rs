//! Regions that yield.

use ebbtide_ir::ArrayId;

/// What the driver must know of a region that yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Counts the finished executions of the region.
    pub visits: ArrayId,
    /// The flag of the region.
    pub flag: ArrayId,
    /// An array that an abandoned execution may leave changed for the next one, so that a plain run computes something
    /// else than this one, which undoes everything: then a yield is an error.
    pub reread: Option<ArrayId>,
}
