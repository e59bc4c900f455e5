//! What a text is for.

/// The processor that the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The bytes of its vectors: 16, 32 or 64.
    pub vector_bytes: usize,
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

/// From so much work on, in additions, threads of a CPU share a loop.
pub const WORTH_SHARING: f64 = 12000.0;
