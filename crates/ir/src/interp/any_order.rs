//! Parallel loops under a mode: iterations in any order, their accesses noted.
//!
//! What iterations combine into shared elements waits until all of them have run. It is then combined in the order of
//! law 8, so that the order of execution changes no bit.

use super::Machine;
use super::evaluate::{Bits, combine};
use super::modes::{IterationOrder, Races};
use super::race_log::{RaceLog, race};
use crate::analysis::dependence::{ParFacts, Sharing};
use crate::analysis::leaf::{LANES, Leaves};
use crate::syntax::*;

/// What the modes keep of the parallel loop that runs now.
#[derive(Debug)]
pub(super) struct Underway<'p> {
    /// The number of the iteration that runs, in iteration order.
    iteration: u64,
    from: Vec<i64>,
    extents: Vec<i64>,
    log: Option<RaceLog<'p>>,
    /// The first conflict. It stops the run when the iteration has ended: what it claims after a read may be taken, and
    /// then that is the fault.
    conflict: Option<Box<Race>>,
    /// How the iterations share what they write.
    facts: Option<&'p ParFacts>,
    /// What was combined into them.
    terms: Vec<Term<'p>>,
}

/// A value that waits to be combined into an element.
#[derive(Debug)]
struct Term<'p> {
    iteration: u64,
    how: Combine,
    store: &'p Store,
    at: usize,
    value: Bits,
}

impl Underway<'_> {
    /// The index of an iteration by its number.
    fn index(&self, number: u64) -> Vec<i64> {
        let mut rest = number as i64;
        let mut index = self.from.clone();
        for (i, extent) in index.iter_mut().zip(&self.extents).rev() {
            *i += rest % extent;
            rest /= extent;
        }
        index
    }
}

impl<'p> Machine<'p, '_> {
    /// Does a mode want to know of iterations?
    pub(super) fn orders_or_watches(&self) -> bool {
        self.modes.order != IterationOrder::Ascending || self.modes.races != Races::Ignored
    }

    /// Runs the iterations of a loop, of which there is at least one, in the order that the mode says.
    pub(super) fn par_in_any_order(
        &mut self,
        par: &'p Par,
        from: Vec<i64>,
        extents: Vec<i64>,
    ) -> Result<(), Fault> {
        let facts = self.facts.pars.get(&par.id);
        let log = (self.modes.races == Races::Reported).then(RaceLog::default);
        let count = extents.iter().product::<i64>() as u64;
        self.executions += 1;
        let numbers = self.modes.order.of(count, self.executions);
        let mut underway =
            Box::new(Underway { iteration: 0, from, extents, log, conflict: None, facts, terms: Vec::new() });
        for number in numbers {
            underway.iteration = number;
            for (range, i) in par.ranges.iter().zip(underway.index(number)) {
                self.scalars.values[range.var.index()] = i as Bits;
            }
            self.underway = Some(underway);
            self.block(&par.body)?;
            match self.underway.take() {
                Some(same) => underway = same,
                None => return Ok(()),
            }
            if let Some(race) = underway.conflict.take() {
                return Err(Fault::Race(race));
            }
        }
        self.combine_in_iteration_order(par, *underway)
    }

    /// Notes an access of the iteration that runs now. It is inlined so that a run without modes sees one test.
    #[inline]
    pub(super) fn note(&mut self, array: ArrayId, at: usize, how: Touched, site: &'p Option<Site>) {
        if self.underway.is_some() {
            self.note_under_way(array, at, how, site);
        }
    }

    #[cold]
    fn note_under_way(&mut self, array: ArrayId, at: usize, how: Touched, site: &'p Option<Site>) {
        let Some(mut underway) = self.underway.take() else { return };
        let iteration = underway.iteration;
        let noted = underway.log.as_mut().and_then(|log| log.note((array, at), iteration, how, site));
        if let (Some(noted), None) = (noted, &underway.conflict) {
            let (name, element) = (self.program.array(array).name.clone(), self.element_index(array, at));
            let race = race(name, element, noted, |number| underway.index(number));
            underway.conflict = Some(Box::new(race));
        }
        self.underway = Some(underway);
    }

    /// Keeps what an iteration combines into a shared element; says whether there was such an iteration.
    #[inline]
    pub(super) fn defer(&mut self, how: Combine, store: &'p Store, at: usize, value: Bits) -> Deferred {
        match &mut self.underway {
            Some(underway) if underway.facts.is_some_and(|facts| facts.of(store) != Sharing::Own) => {
                underway.terms.push(Term { iteration: underway.iteration, how, store, at, value });
                Deferred::Yes
            }
            _ => Deferred::No,
        }
    }

    fn combine_in_iteration_order(&mut self, par: &'p Par, mut underway: Underway<'p>) -> Result<(), Fault> {
        // Terms of one iteration stay in the order in which it made them.
        underway.terms.sort_by_key(|term| term.iteration);
        self.begin_reductions(par);
        let leaves = Leaves::of(&underway.extents);
        let row = leaves.row.max(1) as u64;
        let mut leaf = 0;
        for Term { iteration, how, store, at, value } in underway.terms {
            let ty = self.program.array(store.array).ty;
            let place = (iteration % row) as i64;
            let here = leaves.leaf((iteration / row) as i64, place);
            while leaf < here {
                self.end_leaf();
                leaf += 1;
            }
            match self.reductions.get_mut(&store.id) {
                Some(r) => {
                    let lane = place as usize % LANES;
                    r.element = Some((store.array, at));
                    r.lanes[lane] = combine(how, ty, r.lanes[lane], value);
                }
                None => self.combine_in_order(how, store, at, value)?,
            }
        }
        // The leaves after the last term: the loop over all iterations ends them too.
        for _ in leaf + 1..leaves.count() {
            self.end_leaf();
        }
        self.end_reductions(par)
    }
}

/// Does a value wait to be combined?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deferred {
    Yes,
    No,
}
