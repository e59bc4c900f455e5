//! What a text is for.

/// The processor that the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The bytes of its vectors: 16, 32 or 64.
    pub vector_bytes: usize,
    /// How many threads may run the text.
    pub threads: Threads,
}

/// How many threads of a CPU may run the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One alone: what several would need is left out.
    One,
    /// Any number of them.
    Several,
}

/// A language of the C family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// GNU C, for a handful of threads with tables of their own.
    C,
    /// CUDA C, for a grid of threads that share all tables.
    Cuda,
}

/// How many threads a block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As many as there can be.
    Full,
    /// Half of them, each with twice the registers: its numbers need them.
    Half,
    /// Half of them, which hardly meet, so that any number of blocks is as good.
    Apart,
}

/// The bytes of the widest vectors: their lanes have masks in registers of their own, and load each its own element.
pub(crate) const WIDEST: usize = 64;

/// Parallel variables of narrow loops are not further from zero; `EB_SMALL` of a GPU's prelude.
pub(crate) const SMALL: i64 = 1 << 30;

/// A loop that adds one term after the other, of so many iterations, is worth a team of threads of a GPU.
pub const LONG_CHAIN: u64 = 64;

/// From so much work on, in additions, threads of a CPU share a loop.
pub const WORTH_SHARING: f64 = 12000.0;

/// From so much work on, in additions, threads of a CPU note the terms of ordered sums at shared elements.
pub(crate) const WORTH_NOTING: f64 = 40_000.0;

/// What it takes to combine a term with an element at once, in additions.
pub(crate) const COMBINED: f64 = 4.0;

/// What it takes to note a term and to combine it later.
pub(crate) const NOTED: f64 = 12.0;
