//! The text of segments in C and CUDA C, from the program and what the analyses say of it.

pub(crate) mod barriers;
pub(crate) mod body_loops;
pub(crate) mod body_sums;
pub(crate) mod bucket_scatter;
pub(crate) mod c_types;
pub(crate) mod deferred_products;
pub(crate) mod dump;
pub(crate) mod elements;
pub(crate) mod emitter;
pub(crate) mod entry;
pub(crate) mod grid;
pub(crate) mod grid_nest;
pub(crate) mod grid_reduction;
pub(crate) mod grid_safe;
pub(crate) mod index_expr;
pub(crate) mod interchanged;
pub(crate) mod interior;
pub(crate) mod interior_on_entry;
pub(crate) mod kept_terms;
pub(crate) mod lanes;
pub(crate) mod library;
pub(crate) mod loop_functions;
pub(crate) mod loops_apart;
pub(crate) mod narrow_bounds;
pub(crate) mod nest;
pub(crate) mod nest_functions;
pub(crate) mod operation;
pub(crate) mod ordered_scatter;
pub(crate) mod par;
pub(crate) mod program_loops;
pub(crate) mod region;
pub(crate) mod row_tiles;
pub(crate) mod segment;
pub(crate) mod statements;
pub(crate) mod term_runs;
pub(crate) mod thread_ownership;

#[cfg(test)]
mod wgsl;
