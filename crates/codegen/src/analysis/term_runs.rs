//! Sums of floats at elements that iterations share, whose terms are counted (law 8). Input: a parallel loop; output: the arrays and
//! updates, and the memory in which the threads of a CPU count.
//!
//! Up to [`RUN`] terms of an element are a plain chain. A loop that is known to add no more is not among these.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Block, Facts, Indices, Ordering, Par, ParFacts, ParId, Program, RUN, Sharing, Stmt, ValueId,
    walk,
};

use crate::analysis::ordered_updates::{batch, most_terms};
use crate::kernel::term_runs::TermRuns;

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
    let mut each = Vec::new();
    for array in &runs.arrays {
        let groups = components(program, sharing, par, *array).unwrap_or_default();
        let together = groups.first().map_or(1, Vec::len);
        each.push(most_terms(program, sharing, par, *array).map(|terms| terms / together));
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            let Some((last, others)) = group.split_last() else { continue };
            let of = |other: &(Indices, i64)| other.1 - last.1;
            runs.groups.insert((*array, last.0), others.iter().map(of).collect());
            runs.riders.extend(others.iter().map(|other| (*array, other.0)));
        }
    }
    runs.each = each.into_iter().collect::<Option<Vec<usize>>>().and_then(|each| each.into_iter().max());
    let literal = |v: ValueId| program.literal(v).and_then(|literal| literal.to_i64());
    match may_end_a_run(par, runs.each, &literal) {
        true => runs,
        false => TermRuns::default(),
    }
}

/// The updates of an array in groups, in source order: those of one group add to all components of a row, the same in each group, one right
/// after the other. `None` where they do not.
fn components(
    program: &Program,
    sharing: &ParFacts,
    par: &Par,
    array: ArrayId,
) -> Option<Vec<Vec<(Indices, i64)>>> {
    let mut groups = Groups { program, sharing, array, found: Vec::new() };
    groups.block(&par.body)?;
    let set = |group: &Vec<(Indices, i64)>| group.iter().map(|one| one.1).collect::<BTreeSet<i64>>();
    let first = groups.found.first().map(set)?;
    // One component counts, the same in all groups.
    let last = |group: &Vec<(Indices, i64)>| group.last().map(|one| one.1);
    let counts = groups.found.first().and_then(last);
    let alike = |group: &Vec<(Indices, i64)>| set(group) == first && last(group) == counts;
    groups.found.iter().all(alike).then_some(groups.found)
}

struct Groups<'a> {
    program: &'a Program,
    sharing: &'a ParFacts,
    array: ArrayId,
    found: Vec<Vec<(Indices, i64)>>,
}

impl Groups<'_> {
    /// The groups of a block; no group goes beyond one. The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) -> Option<()> {
        let mut open: Vec<(Indices, i64)> = Vec::new();
        for stmt in block {
            let before = self.found.len();
            for inner in stmt.blocks() {
                self.block(inner)?;
            }
            // Nothing that may end an iteration stands inside a group, and no other group.
            if self.found.len() > before || stmt.blocks().next().is_some() {
                self.found.extend((!open.is_empty()).then(|| std::mem::take(&mut open)));
            }
            let Stmt::Update(_, s) = stmt else { continue };
            if s.array != self.array || self.sharing.of(s) != Sharing::Scatter {
                continue;
            }
            let (component, row) = s.index.as_slice().split_last()?;
            let component = self.program.literal(*component).and_then(|literal| literal.to_i64())?;
            let fits = |one: &(Indices, i64)| {
                one.1 != component && one.0.as_slice().split_last().is_some_and(|(_, other)| other == row)
            };
            if row.is_empty() {
                return None;
            }
            if !open.iter().all(fits) {
                self.found.push(std::mem::take(&mut open));
            }
            open.push((s.index, component));
        }
        self.found.extend((!open.is_empty()).then_some(open));
        Some(())
    }
}

/// How many iterations a loop has, where that is known.
fn iterations(par: &Par, value: &dyn Fn(ValueId) -> Option<i64>) -> Option<i64> {
    let extent = |from, to| Some(value(to)?.saturating_sub(value(from)?).max(0));
    let mut all: Option<i64> = Some(1);
    for range in &par.ranges {
        all = all.zip(extent(range.from, range.to)).map(|(all, extent)| all.saturating_mul(extent));
    }
    all
}

/// May an element of a loop get more terms than a run has?
fn may_end_a_run(par: &Par, each: Option<usize>, value: &dyn Fn(ValueId) -> Option<i64>) -> bool {
    let each = each.map(|each| i64::try_from(each).unwrap_or(i64::MAX));
    let terms = iterations(par, value).zip(each).map(|(all, each)| all.saturating_mul(each));
    terms.is_none_or(|terms| terms > RUN as i64)
}

/// The memory in which threads count terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomForRuns {
    /// The most elements that the arrays of one loop have, in groups of 64.
    pub elements: u64,
    /// The most bytes of the sums of finished runs.
    pub sums: u64,
}

impl RoomForRuns {
    /// What holds both.
    pub fn max(self, other: RoomForRuns) -> RoomForRuns {
        RoomForRuns { elements: self.elements.max(other.elements), sums: self.sums.max(other.sums) }
    }

    /// The bytes of the counts, and of a bit for each element.
    pub fn counts(&self) -> [u64; 2] {
        [self.elements.saturating_mul(2), self.elements / 8]
    }

    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.counts().into_iter().fold(self.sums, u64::saturating_add)
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
        let whole = elements.checked_next_multiple_of(64).unwrap_or(u64::MAX);
        room.elements = room.elements.saturating_add(whole);
        room.sums = room
            .sums
            .saturating_add(elements.saturating_mul(size).checked_next_multiple_of(8).unwrap_or(u64::MAX));
    }
    room
}

/// The bytes in which a grid keeps, by element, what the open run and the finished ones are, while it runs a program; `value` gives what
/// is known of a value, `elements` how many an array has.
pub fn bytes_of_open_runs(
    (program, facts): (&Program, &Facts),
    value: &dyn Fn(ValueId) -> Option<i64>,
    elements: &dyn Fn(ArrayId) -> u64,
) -> u64 {
    let mut bytes = 0;
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            let runs = TermRuns { batch: batch(program, facts, par), ..term_runs(program, facts, par) };
            bytes = bytes.max(bytes_of_loop(program, (par, &runs), value, elements));
        }
    });
    bytes
}

/// The same while it runs one loop, which counts these terms.
pub fn bytes_of_loop(
    program: &Program,
    (par, runs): (&Par, &TermRuns),
    value: &dyn Fn(ValueId) -> Option<i64>,
    elements: &dyn Fn(ArrayId) -> u64,
) -> u64 {
    // Wide places take twice the room.
    let mut arrays = (0..program.arrays.len()).map(ArrayId::from_index);
    let wide = if arrays.any(|array| elements(array) > i32::MAX as u64) { 2 } else { 1 };
    let all = iterations(par, value).zip(runs.batch);
    let one_batch = all.is_some_and(|(all, batch)| all <= (batch / wide) as i64);
    if one_batch || !may_end_a_run(par, runs.each, value) {
        return 0;
    }
    // Counts and sums are whole words each.
    let of = |array: &ArrayId| {
        let size = program.array(*array).ty.size() as u64;
        elements(*array).saturating_mul(4 + size).saturating_add(16)
    };
    runs.arrays.iter().map(of).fold(0, u64::saturating_add)
}
