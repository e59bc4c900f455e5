//! Facts about a program: computed once, never changed.

pub(crate) mod activity;
pub(crate) mod block_values;
pub(crate) mod dead_on_entry;
pub(crate) mod effects;
pub(crate) mod extremes;
pub(crate) mod first_rows;
pub(crate) mod idempotence;
pub(crate) mod index_inverse;
pub(crate) mod index_preimage;
pub(crate) mod iteration_number;
pub(crate) mod left_in_arrays;
pub(crate) mod loop_length;
pub(crate) mod names;
pub(crate) mod needed;
pub(crate) mod operation_arguments;
pub(crate) mod operation_rules;
pub(crate) mod overwritten;
pub(crate) mod polynomial;
pub(crate) mod regions;
pub(crate) mod sections;
pub(crate) mod store_forwarding;
pub(crate) mod subarray;
pub(crate) mod top_level;
pub(crate) mod trajectory;
pub(crate) mod written_first;
