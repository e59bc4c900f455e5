//! The steps of each target, in the order in which they are made.
//!
//! First those of a segment, then those of the loops around iterations, then those of an iteration. A form of an iteration goes through
//! some of the last ones, in this order (`transform::forms`); a step that is not in the list of a target is never made for it.

use super::step::Step;

/// Threads of a CPU, with vectors: `print` writes it as C.
pub(crate) const C: &[Step] = &[
    // A segment.
    Step::DeferredProducts,
    Step::PackedTapes,
    // The loops around iterations.
    Step::KeptTerms,
    Step::Buckets,
    Step::Peel,
    Step::ProvedRows,
    // An iteration.
    Step::Lower,
    Step::Interior,
    Step::HoistInvariants,
    Step::JoinUpdates,
    Step::RowEnds,
    Step::Vectorise,
    Step::Gathers,
    Step::Jam,
    Step::JamRows,
    Step::Windows,
    Step::RowTiles,
    Step::Ahead,
    Step::LanesOfSums,
];

/// A grid of threads: `print` writes it as CUDA C.
pub(crate) const CUDA: &[Step] = &[
    // A segment.
    Step::Interchange,
    // The loops around iterations.
    Step::KeptTerms,
    Step::NotedTerms,
    Step::SumChains,
    // An iteration.
    Step::Lower,
    Step::HoldElements,
    Step::Interior,
    Step::FaultsAtEnd,
    Step::FaultsAside,
    Step::WithoutChecks,
    Step::HoistInvariants,
    Step::Specialise,
    Step::NarrowIndex,
    Step::Remainders,
    Step::JamColumns,
    Step::Sides,
    Step::Predicate,
    Step::AddressReuse,
    Step::SinkStores,
];

#[test]
fn every_step_belongs_to_a_target_and_is_in_its_list_once() {
    use std::collections::BTreeSet;
    let all: BTreeSet<Step> = C.iter().chain(CUDA).copied().collect();
    assert!(Step::OPTIONAL.iter().all(|step| all.contains(step)));
    for list in [C, CUDA] {
        assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len());
    }
}
