//! Transforms: functions from bodies of iterations to bodies of iterations. Each says where it is legal.

pub(crate) mod address_reuse;
pub(crate) mod ahead;
pub(crate) mod checks;
pub(crate) mod forms;
pub(crate) mod grid_nest;
pub(crate) mod hold_elements;
pub(crate) mod interchange;
pub(crate) mod interior;
pub(crate) mod join_updates;
pub(crate) mod lanes_of_sums;
pub(crate) mod loop_nest;
pub(crate) mod lower;
pub(crate) mod narrow_index;
pub(crate) mod peel;
pub(crate) mod pipeline;
pub(crate) mod predicate;
pub(crate) mod remainders;
pub(crate) mod row_tiles;
pub(crate) mod segment;
pub(crate) mod sides;
pub(crate) mod sink_stores;
pub(crate) mod specialise;
pub(crate) mod step;
pub(crate) mod vectorise;
pub(crate) mod windows;

#[cfg(test)]
pub(crate) mod tests;
