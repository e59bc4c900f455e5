//! How much iterations compute, as data (`analysis::work` counts it).

use ebbtide_ir::ValueId;

/// How much a block computes, roughly in additions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub own: u64,
    /// The blocks in it, and how often each of them runs.
    pub blocks: Vec<(TripCount, Work)>,
}

/// How often a block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TripCount {
    Once,
    /// As a guess: its bounds are data.
    Guessed(u64),
    Between(ValueId, ValueId),
}

impl Work {
    /// All of it, where `extent` tells how far apart two values are; a loop with other bounds is taken to run a while. The depth of
    /// recursion is that of nesting in the source.
    pub fn total(&self, extent: &dyn Fn(ValueId, ValueId) -> Option<f64>) -> f64 {
        /// What a loop is taken to run whose bounds nobody knows yet.
        const TRIPS: f64 = 32.0;
        let blocks = self.blocks.iter().map(|(trips, work)| {
            let trips = match trips {
                TripCount::Once => 1.0,
                TripCount::Guessed(trips) => *trips as f64,
                TripCount::Between(from, to) => extent(*from, *to).unwrap_or(TRIPS),
            };
            trips * work.total(extent)
        });
        self.own as f64 + blocks.sum::<f64>()
    }
}
