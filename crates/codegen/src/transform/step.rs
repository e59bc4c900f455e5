//! The steps from the program to iterations and the loops around them, by name.

use std::collections::BTreeSet;

/// A step: what the module of its name does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Lower,
    FaultsAtEnd,
    FaultsAside,
    Interior,
    HoistInvariants,
    JoinUpdates,
    Vectorise,
    Jam,
    JamRows,
    JamColumns,
    Windows,
    RowTiles,
    Ahead,
    LanesOfSums,
    HoldElements,
    WithoutChecks,
    Specialise,
    NarrowIndex,
    Remainders,
    Sides,
    Predicate,
    AddressReuse,
    SinkStores,
    Buckets,
    Peel,
    KeptTerms,
    NotedTerms,
    SumChains,
    Interchange,
    DeferredProducts,
    PackedTapes,
    ProvedRows,
    RowEnds,
    Gathers,
}

impl Step {
    /// The steps that make programs faster and can be left out.
    pub const OPTIONAL: [Step; 29] = [
        Step::FaultsAtEnd,
        Step::Interior,
        Step::HoistInvariants,
        Step::JoinUpdates,
        Step::Vectorise,
        Step::Jam,
        Step::JamRows,
        Step::JamColumns,
        Step::Windows,
        Step::RowTiles,
        Step::Ahead,
        Step::LanesOfSums,
        Step::Specialise,
        Step::NarrowIndex,
        Step::Remainders,
        Step::Predicate,
        Step::AddressReuse,
        Step::SinkStores,
        Step::Buckets,
        Step::Peel,
        Step::KeptTerms,
        Step::NotedTerms,
        Step::SumChains,
        Step::Interchange,
        Step::DeferredProducts,
        Step::PackedTapes,
        Step::ProvedRows,
        Step::RowEnds,
        Step::Gathers,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Lower => "lower",
            Step::FaultsAtEnd => "faults at end",
            Step::FaultsAside => "faults aside",
            Step::Interior => "interior",
            Step::HoistInvariants => "hoist invariants",
            Step::JoinUpdates => "join updates",
            Step::Vectorise => "vectorise",
            Step::Jam => "jam",
            Step::JamRows => "jam rows",
            Step::JamColumns => "jam columns",
            Step::Windows => "windows",
            Step::RowTiles => "row tiles",
            Step::Ahead => "ahead",
            Step::LanesOfSums => "lanes of sums",
            Step::HoldElements => "hold elements",
            Step::WithoutChecks => "without checks",
            Step::Specialise => "specialise",
            Step::NarrowIndex => "narrow index",
            Step::Remainders => "remainders",
            Step::Sides => "sides",
            Step::Predicate => "predicate",
            Step::AddressReuse => "address reuse",
            Step::SinkStores => "sink stores",
            Step::Buckets => "buckets",
            Step::Peel => "peel",
            Step::KeptTerms => "kept terms",
            Step::NotedTerms => "noted terms",
            Step::SumChains => "sum chains",
            Step::Interchange => "interchange",
            Step::DeferredProducts => "deferred products",
            Step::PackedTapes => "packed tapes",
            Step::ProvedRows => "proved rows",
            Step::RowEnds => "row ends",
            Step::Gathers => "gathers",
        }
    }

    /// The optional steps that these names, separated by commas, leave out.
    pub fn left_out(names: &str) -> BTreeSet<Step> {
        let named = |step: &Step| names.split(',').any(|name| name.trim() == step.name());
        Step::OPTIONAL.into_iter().filter(named).collect()
    }
}

#[test]
fn steps_are_left_out_by_name_and_only_those_that_can_be() {
    let left_out = Step::left_out("sink stores, vectorise,lower,anything");
    assert_eq!(left_out, BTreeSet::from([Step::SinkStores, Step::Vectorise]));
    for step in Step::OPTIONAL {
        assert_eq!(Step::left_out(step.name()), BTreeSet::from([step]));
    }
}
