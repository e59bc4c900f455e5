//! Analyses: pure functions of the program and its facts. They return data, and know nothing of the text.

pub(crate) mod address_reuse;
pub(crate) mod alone;
pub(crate) mod along_rows;
pub(crate) mod assertions;
pub(crate) mod barriers;
pub(crate) mod block_width;
pub(crate) mod boundary_conditions;
pub(crate) mod bounds_proof;
pub(crate) mod bucket_scatter;
pub(crate) mod columns_side_by_side;
pub(crate) mod deferred_products;
pub(crate) mod direction;
pub(crate) mod exact;
pub(crate) mod flat_rows;
pub(crate) mod gathers;
pub(crate) mod grid_form;
pub(crate) mod interchange;
pub(crate) mod interior;
pub(crate) mod kept_terms;
pub(crate) mod lane_order;
pub(crate) mod loop_invariants;
pub(crate) mod motion;
pub(crate) mod names;
pub(crate) mod narrow_index;
pub(crate) mod ordered_updates;
pub(crate) mod packed_tapes;
pub(crate) mod register_pressure;
pub(crate) mod remainders;
pub(crate) mod row_ends;
pub(crate) mod row_form;
pub(crate) mod rows_side_by_side;
pub(crate) mod shared_updates;
pub(crate) mod sum_chains;
pub(crate) mod team_sums;
pub(crate) mod term_counts;
pub(crate) mod term_runs;
pub(crate) mod thread_ownership;
pub(crate) mod varying;
pub(crate) mod vector_costs;
pub(crate) mod vectors;
pub(crate) mod work;

#[cfg(test)]
mod tests;
