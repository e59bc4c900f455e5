//! Rows of an array that gather side by side.
//!
//! The components of vectors are rows: an iteration that reads `x[[j, 0]]` reads `x[[j, 1]]` and `x[[j, 2]]` too. A loop for each row
//! would run the body of all iterations that come to it, once for each row; one loop for all of them runs it once.
//!
//! - Input: targets, in order.
//! - Output: groups of neighbouring targets, and a loop for a group of several rows.
//! - Invariant: each row adds up what a loop of its own would, in the same order.

use ebbtide_ir::{ArrayId, Branch, Indices, LocalId, Par, Range, Safety, Stmt, ValueId};

use super::gathered_loads::{Part, Target};
use super::iterations::requirements;
use super::{ParAdjoint, Site};
use crate::analysis::index_inverse::{Inverse, Variable, invert, varying};
use crate::analysis::store_forwarding::StoreForwarding;
use crate::error::Error;
use crate::generate::task::Sink;
use crate::plan::shadow_state::ShadowState;
use crate::request::Optimisation;
use crate::writer::prune::prune;
use crate::writer::{Writer, both, within};

/// How iterations come to the elements of a row: along which dimensions, and for each load how their variables follow.
#[derive(PartialEq, Eq)]
struct Ways {
    array: ArrayId,
    fixed: Vec<usize>,
    loads: Vec<Vec<Variable>>,
}

impl ParAdjoint<'_> {
    /// The targets, with neighbouring rows that iterations come to in the same ways in one group.
    pub(super) fn side_by_side(&self, par: &Par, all: &[Site], targets: Vec<Target>) -> Vec<Vec<Target>> {
        let joins = !self.without.contains(&Optimisation::GatherSideBySide);
        let mut groups: Vec<Vec<Target>> = Vec::new();
        let mut last: Option<Ways> = None;
        for target in targets {
            let ways = if joins { self.ways(par, all, &target) } else { None };
            match groups.last_mut().filter(|_| ways.is_some() && ways == last) {
                Some(group) => group.push(target),
                None => groups.push(vec![target]),
            }
            last = ways;
        }
        groups
    }

    /// How iterations come to the elements of a row, where they add to what others have added.
    fn ways(&self, par: &Par, all: &[Site], target: &Target) -> Option<Ways> {
        let Part::Row(fixed) = &target.part else { return None };
        if self.is_first(par, all, target) {
            return None;
        }
        let loads = self.turned(par, all, target)?;
        let adds = |(_, site, inverse): &(usize, &Site, Inverse)| self.is_conditional(par, site, inverse);
        let ways = Ways {
            array: target.array,
            fixed: fixed.iter().map(|(d, _)| *d).collect(),
            loads: loads.iter().map(|(_, _, inverse)| inverse.variables.clone()).collect(),
        };
        loads.iter().all(adds).then_some(ways)
    }

    /// The loads of a row, by number, and how they are turned round.
    fn turned<'s>(
        &self,
        par: &Par,
        all: &'s [Site],
        target: &Target,
    ) -> Option<Vec<(usize, &'s Site, Inverse)>> {
        let varies = varying(self.source, par);
        let mut loads = Vec::new();
        for (number, site) in all.iter().enumerate().filter(|(_, site)| target.loads.contains(&site.0)) {
            let inverse = invert(self.source, self.affines, par, &varies, site.2)?;
            loads.push((number, site, Inverse { fixed: Vec::new(), ..inverse }));
        }
        Some(loads)
    }

    /// Writes one loop over the elements of rows, each collecting what flows to it.
    pub(super) fn gather_rows(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        all: &[Site],
        rows: &[Target],
    ) -> Result<(), Error> {
        let Some(array) = rows.first().map(|row| row.array) else { return Ok(()) };
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return Ok(()) };
        let loads: Option<Vec<_>> = rows.iter().map(|row| self.turned(par, all, row)).collect();
        let Some(loads) = loads else { return Ok(()) };
        self.make_real(w, array);
        let rank = self.source.array(array).rank;
        let zero = w.index(0);
        let extents: Vec<ValueId> = (0..rank).map(|d| w.dim(shadow, d)).collect();
        let vars: Vec<ValueId> = (0..rank).map(|d| w.loop_var(&format!("k{d}"))).collect();
        let (mut ranges, mut places) = (Vec::new(), Vec::new());
        for row in rows {
            let Part::Row(fixed) = &row.part else { continue };
            let (mut index, mut exists) = (vars.clone(), None);
            for (d, v) in fixed {
                index[*d] = self.sum(w, self.env, self.affines.form(*v));
                let inside = within(w, index[*d], zero, extents[*d]);
                exists = Some(both(w, exists, inside));
            }
            let runs = |d: &usize| !fixed.iter().any(|(fixed, _)| fixed == d);
            ranges =
                (0..rank).filter(runs).map(|d| Range { var: vars[d], from: zero, to: extents[d] }).collect();
            places.extend(Indices::new(&index).zip(exists));
        }
        w.begin();
        let start = w.real(self.source.array(array).ty, 0.0);
        let totals: Vec<LocalId> = rows.iter().map(|_| w.sum(start)).collect();
        for (k, (_, _, inverse)) in loads.first().into_iter().flatten().enumerate() {
            let sites = loads.iter().zip(&totals).map(|(of_row, total)| (of_row[k].0, Sink::Local(*total)));
            self.turn_round(w, (par, forwarding), array, inverse, &vars, sites.collect())?;
        }
        for ((index, condition), total) in places.into_iter().zip(totals) {
            // A row that the loop reads under a condition, or has no iterations to read, need not exist.
            w.begin();
            let total = w.get(total);
            w.accumulate(shadow, index, total, par.site.clone());
            let then = w.end();
            w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
        }
        let body = w.end();
        let (id, body) = (w.new_par(), prune(&w.program, body));
        self.shadow_states.insert(array, ShadowState::Numbers);
        let gather = Par { site: par.site.clone(), ..Par::over(id, ranges, body) };
        w.push(Stmt::Par(Par { requires: requirements(par, self.env), safety: Safety::Proved, ..gather }));
        Ok(())
    }
}
