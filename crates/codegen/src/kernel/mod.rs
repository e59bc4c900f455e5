//! The kernel IR: what stands between a program and a text. It knows nothing of the text.
//!
//! An iteration of a parallel loop is a list of statements ([`stmt`]) over expressions ([`expr`]), both trees; [`verify`] says
//! what is right, `show` prints it for people, and `interpret` is what it means, for tests. The loops around iterations are a
//! tree of their own ([`nest`] for the threads of a CPU, [`grid`] for those of a GPU, [`interchange`] where a loop runs inside its parallel
//! loops), with the intervals in which iterations are in the interior ([`interval`]). Analyses speak of
//! indices in a smaller language ([`index_expr`]), whose meaning is in `evaluate`. What a text is for is in [`machine`].

pub(crate) mod bounds_test;
#[cfg(test)]
pub(crate) mod evaluate;
pub(crate) mod expr;
pub(crate) mod grid;
pub(crate) mod index_expr;
pub(crate) mod interchange;
#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod interval;
pub(crate) mod machine;
pub(crate) mod name;
pub(crate) mod nest;
pub(crate) mod segment;
pub(crate) mod show;
pub(crate) mod stmt;
pub(crate) mod term_runs;
pub(crate) mod tiles;
pub(crate) mod verify;
pub(crate) mod work;
