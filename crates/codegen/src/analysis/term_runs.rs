//! Sums of floats at elements that iterations share, whose terms are counted (law 8). Input: a parallel loop; output: the arrays and
//! updates, and the memory in which the threads of a CPU count.
//!
//! Up to [`RUN`] terms of an element are a plain chain. A loop that is known to add no more is not among these.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Block, Facts, Indices, Ordering, Par, ParId, Program, RUN, Stmt, ValueId, walk};

use crate::analysis::ordered_updates::most_terms;

/// The updates of a loop whose terms are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermRuns {
    /// Their arrays, in source order.
    pub arrays: Vec<ArrayId>,
    pub(crate) updates: BTreeSet<(ArrayId, Indices)>,
    /// How many terms an iteration adds to an array at most, where that is a number.
    pub each: Option<usize>,
}

impl TermRuns {
    /// The number of an array.
    pub(crate) fn number(&self, array: ArrayId) -> Option<usize> {
        self.arrays.iter().position(|a| *a == array)
    }
}

/// The updates of a loop whose terms are counted; none where they are a plain chain.
pub(crate) fn term_runs(program: &Program, facts: &Facts, par: &Par) -> TermRuns {
    let mut runs = TermRuns::default();
    let Some(sharing) = facts.pars.get(&par.id).filter(|_| par.ordering == Ordering::Ordered) else {
        return runs;
    };
    walk(&par.body, &mut |stmt| {
        if let Stmt::Update(how, s) = stmt
            && sharing.adds_by_runs(*how, program.array(s.array).ty, s)
        {
            runs.updates.insert((s.array, s.index));
            if !runs.arrays.contains(&s.array) {
                runs.arrays.push(s.array);
            }
        }
    });
    let each = runs.arrays.iter().map(|array| most_terms(program, sharing, par, *array));
    runs.each = each.collect::<Option<Vec<usize>>>().and_then(|each| each.into_iter().max());
    let literal = |v: ValueId| program.literal(v).and_then(|literal| literal.to_i64());
    match may_end_a_run(par, runs.each, &literal) {
        true => runs,
        false => TermRuns::default(),
    }
}

/// May an element of a loop get more terms than a run has?
fn may_end_a_run(par: &Par, each: Option<usize>, value: &dyn Fn(ValueId) -> Option<i64>) -> bool {
    let extent = |from, to| Some(value(to)?.saturating_sub(value(from)?).max(0));
    let mut terms = each.map(|each| i64::try_from(each).unwrap_or(i64::MAX));
    for range in &par.ranges {
        terms = terms.zip(extent(range.from, range.to)).map(|(terms, extent)| terms.saturating_mul(extent));
    }
    terms.is_none_or(|terms| terms > RUN as i64)
}

/// The memory in which threads count terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomForRuns {
    /// The most elements that the arrays of one loop have.
    pub elements: u64,
    /// The most bytes of the sums of finished runs.
    pub sums: u64,
}

impl RoomForRuns {
    /// What holds both.
    pub fn max(self, other: RoomForRuns) -> RoomForRuns {
        RoomForRuns { elements: self.elements.max(other.elements), sums: self.sums.max(other.sums) }
    }

    /// The bytes of the counts.
    pub fn counts(&self) -> u64 {
        self.elements.saturating_mul(2).checked_next_multiple_of(64).unwrap_or(u64::MAX)
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.counts().saturating_add(self.sums)
    }
}

/// The memory in which threads count the terms of these segments; `value` gives what is known of a value, `elements` how many an
/// array has, and `known` what the text of a loop counts, where there is a text.
pub fn room_for_runs<'p>(
    (program, facts): (&'p Program, &Facts),
    segments: impl IntoIterator<Item = &'p Block>,
    value: &dyn Fn(ValueId) -> Option<i64>,
    elements: &dyn Fn(ArrayId) -> u64,
    known: &BTreeMap<ParId, TermRuns>,
) -> RoomForRuns {
    let mut room = RoomForRuns::default();
    for block in segments {
        walk(block, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                let found = term_runs(program, facts, par);
                for runs in [Some(&found), known.get(&par.id)].into_iter().flatten() {
                    if may_end_a_run(par, runs.each, value) {
                        room = room.max(room_of(program, runs, elements));
                    }
                }
            }
        });
    }
    room
}

fn room_of(program: &Program, runs: &TermRuns, elements: &dyn Fn(ArrayId) -> u64) -> RoomForRuns {
    let mut room = RoomForRuns::default();
    for array in &runs.arrays {
        let (elements, size) = (elements(*array), program.array(*array).ty.size() as u64);
        room.elements = room.elements.saturating_add(elements);
        room.sums = room
            .sums
            .saturating_add(elements.saturating_mul(size).checked_next_multiple_of(8).unwrap_or(u64::MAX));
    }
    room
}
