//! Parallel loops: one iteration after the other, last dimension fastest.

use super::any_order::Deferred;
use super::evaluate::{Bits, combine};
use super::{Machine, Reduction};
use crate::analysis::dependence::Sharing;
use crate::analysis::leaf::{LANES, Leaves};
use crate::syntax::*;

impl<'p> Machine<'p, '_> {
    pub(super) fn par(&mut self, par: &'p Par) -> Result<(), Fault> {
        let bounds = |bound: fn(&Range) -> ValueId| -> Result<Vec<i64>, Fault> {
            par.ranges.iter().map(|range| self.bound(bound(range))).collect()
        };
        let (from, to) = (bounds(|r| r.from)?, bounds(|r| r.to)?);
        let extents: Vec<i64> = from.iter().zip(&to).map(|(f, t)| t.saturating_sub(*f).max(0)).collect();
        if extents.contains(&0) {
            return Ok(());
        }
        self.requirements(par)?;
        if self.orders_or_watches() {
            return self.par_in_any_order(par, from, extents);
        }
        self.begin_reductions(par);
        let leaves = Leaves::of(&extents);
        let (mut at, mut row, mut leaf) = (from.clone(), 0, 0);
        loop {
            for (range, i) in par.ranges.iter().zip(&at) {
                self.scalars.values[range.var.index()] = *i as Bits;
            }
            let last = at.len() - 1;
            let place = at[last] - from[last];
            self.lane = place as usize % LANES;
            if !self.reductions.is_empty() && leaves.leaf(row, place) != leaf {
                leaf = leaves.leaf(row, place);
                self.end_leaf();
            }
            self.block(&par.body)?;
            // The next iteration, like an odometer.
            let Some(d) = (0..at.len()).rev().find(|d| at[*d] + 1 < to[*d]) else { break };
            at[d] += 1;
            if d < last {
                row += 1;
                at[d + 1..].copy_from_slice(&from[d + 1..]);
            }
        }
        self.end_reductions(par)
    }

    /// Asks what must hold so that no two iterations meet.
    fn requirements(&self, par: &'p Par) -> Result<(), Fault> {
        let asked = par.requires.iter().filter(|r| r.asked == Asked::OnEntry);
        match asked.into_iter().find(|r| self.bits(r.condition) == 0) {
            Some(r) => Err(Fault::MayMeet {
                array: self.program.array(r.array).name.clone(),
                accesses: Box::new(r.accesses.clone()),
                site: par.site.clone(),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn begin_reductions(&mut self, par: &'p Par) {
        self.begin_runs(par);
        let Some(facts) = self.facts.pars.get(&par.id) else { return };
        walk(&par.body, &mut |stmt| {
            if let Stmt::Update(how, s) = stmt
                && facts.of(s) == Sharing::Reduce
            {
                let ty = self.program.array(s.array).ty;
                self.reductions.insert(s.id, Reduction::new(*how, ty));
            }
        });
    }

    pub(super) fn end_leaf(&mut self) {
        self.reductions.values_mut().for_each(Reduction::end_leaf);
    }

    pub(super) fn end_reductions(&mut self, par: &'p Par) -> Result<(), Fault> {
        self.end_runs();
        self.end_leaf();
        let mut checked = Ok(());
        walk(&par.body, &mut |stmt| {
            if let Stmt::Update(_, s) = stmt
                && let Some(r) = self.reductions.remove(&s.id)
                && let Some((array, at)) = r.element
            {
                let old = self.read(array, at);
                self.write(array, at, combine(r.how, r.ty, old, r.total));
                if checked.is_ok() {
                    checked = self.check_element(array, at, &s.site);
                }
            }
        });
        checked
    }

    pub(super) fn update(&mut self, how: Combine, s: &'p Store) -> Result<(), Fault> {
        let at = self.element(s.array, s.index, &s.site)?;
        self.note(s.array, at, Touched::Combined(how), &s.site);
        let (value, ty) = (self.bits(s.value), self.program.array(s.array).ty);
        if self.defer(how, s, at, value) == Deferred::Yes {
            return Ok(());
        }
        let lane = self.lane;
        match self.reductions.get_mut(&s.id) {
            Some(r) => {
                r.element = Some((s.array, at));
                r.lanes[lane] = combine(how, ty, r.lanes[lane], value);
            }
            None => self.combine_in_order(how, s, at, value)?,
        }
        Ok(())
    }

    pub(super) fn claim(&mut self, claim: &'p Claim) -> Result<(), Fault> {
        self.equal_shapes(claim.array, claim.taken)?;
        let at = self.element(claim.array, claim.index, &claim.site)?;
        self.note(claim.taken, at, Touched::Claimed, &claim.site);
        if self.read(claim.taken, at) != 0 {
            return Err(Fault::WrittenTwice {
                array: self.program.array(claim.array).name.clone(),
                index: claim.index.as_slice().iter().map(|v| self.index(*v)).collect(),
                site: claim.site.clone(),
            });
        }
        self.write(claim.taken, at, 1);
        Ok(())
    }
}
