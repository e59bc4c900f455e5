//! Sums at elements that iterations share, in the order of law 8: run by run.
//!
//! - Input: the terms that one execution of a parallel loop adds to such elements, in iteration order.
//! - Output: these elements, when the loop has ended.
//! - Invariant: an element holds its open run; what its finished runs amount to stands beside it.

use std::collections::HashMap;

use super::Machine;
use super::evaluate::{Bits, combine, neutral};
use crate::analysis::dependence::RUN;
use crate::syntax::{ArrayId, Combine, Fault, Ordering, Par, Stmt, Store, walk};

/// The elements to which the parallel loop that runs now adds run by run.
#[derive(Debug, Default)]
pub(super) struct Runs {
    elements: HashMap<(ArrayId, usize), Run>,
}

/// An element.
#[derive(Debug, Default)]
struct Run {
    /// How many terms its open run has.
    terms: u32,
    /// The sum of its finished runs.
    finished: Option<Bits>,
}

impl<'p> Machine<'p, '_> {
    /// Combines a term with an element of a loop, in iteration order.
    pub(super) fn combine_in_order(
        &mut self,
        how: Combine,
        s: &'p Store,
        at: usize,
        value: Bits,
    ) -> Result<(), Fault> {
        let ty = self.program.array(s.array).ty;
        let old = self.read(s.array, at);
        self.write(s.array, at, combine(how, ty, old, value));
        if self.by_runs.contains(&s.id) {
            let run = self.runs.elements.entry((s.array, at)).or_default();
            run.terms += 1;
            if run.terms as usize == RUN {
                self.end_run(s.array, at);
            }
        }
        self.check_element(s.array, at, &s.site)
    }

    /// The element holds a whole run: the next one is a chain of its own.
    fn end_run(&mut self, array: ArrayId, at: usize) {
        let ty = self.program.array(array).ty;
        let sum = self.read(array, at);
        if let Some(run) = self.runs.elements.get_mut(&(array, at)) {
            run.terms = 0;
            run.finished = Some(run.finished.map_or(sum, |before| combine(Combine::Add, ty, before, sum)));
            self.write(array, at, neutral(Combine::Add, ty));
        }
    }

    pub(super) fn begin_runs(&mut self, par: &'p Par) {
        self.runs.elements.clear();
        self.by_runs.clear();
        let program = self.program;
        let Some(facts) = self.facts.pars.get(&par.id).filter(|_| par.ordering != Ordering::Relaxed) else {
            return;
        };
        walk(&par.body, &mut |stmt| {
            if let Stmt::Update(how, s) = stmt
                && facts.adds_by_runs(*how, program.array(s.array).ty, s)
            {
                self.by_runs.insert(s.id);
            }
        });
    }

    /// Adds the open run of each element to its finished ones.
    pub(super) fn end_runs(&mut self) {
        for ((array, at), run) in std::mem::take(&mut self.runs.elements) {
            if let Some(finished) = run.finished {
                let (ty, open) = (self.program.array(array).ty, self.read(array, at));
                self.write(array, at, combine(Combine::Add, ty, finished, open));
            }
        }
    }
}
