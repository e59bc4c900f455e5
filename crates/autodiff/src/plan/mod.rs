//! Decisions that both halves of a gradient program read.

pub(crate) mod events;
pub(crate) mod killed_boxes;
pub(crate) mod scratch_arrays;
pub(crate) mod shadow_state;
pub(crate) mod swept_loops;
pub(crate) mod tape_plan;
