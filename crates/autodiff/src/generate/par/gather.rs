//! Loops that gather: each element of a shadow collects what flows to it, at the iterations that read the element.

use std::collections::HashMap;

use ebbtide_ir::{
    Affine, ArrayId, Binary, Branch, Compare, Indices, Loop, LoopKind, Op, Par, Range, Safety, Stmt, ValueId,
    is_zero,
};

use super::gathered_loads::{Part, Span, Target};
use super::iterations::{mapped, requirements};
use super::{Gather, ParAdjoint, Site};
use crate::analysis::index_inverse::{Inverse, Variable, invert, is_dim, varying};
use crate::analysis::store_forwarding::StoreForwarding;
use crate::analysis::subarray::Subarray;
use crate::error::Error;
use crate::generate::task::{Purpose, Sink, Task};
use crate::plan::shadow_state::ShadowState;
use crate::writer::prune::prune;
use crate::writer::{Writer, both, within};

impl ParAdjoint<'_> {
    /// A loop over all elements of the target, each collecting what flows to it. One that gathers into a part of the array
    /// stands where it is written; that over all of it is left to the caller.
    pub(super) fn gather(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        all: &[Site],
        target: &Target,
    ) -> Result<Option<Gather>, Error> {
        let array = target.array;
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return Ok(None) };
        let is_part = !matches!(target.part, Part::All);
        if is_part {
            self.make_real(w, array);
        }
        let zero = w.index(0);
        let (mut ranges, mut element, mut exists) = (Vec::new(), Vec::new(), None);
        // The first element of a row of a flat array, which its elements are counted from.
        let mut firsts: Vec<(usize, ValueId)> = Vec::new();
        for d in 0..self.source.array(array).rank {
            let extent = w.dim(shadow, d);
            let fixed = match &target.part {
                Part::Row(fixed) => fixed.iter().find(|(fixed, _)| *fixed == d),
                _ => None,
            };
            if let Some((_, v)) = fixed {
                let at = self.sum(w, self.env, self.affines.form(*v));
                let inside = within(w, at, zero, extent);
                exists = Some(both(w, exists, inside));
                element.push(at);
                continue;
            }
            let var = w.loop_var(&format!("k{d}"));
            let (from, to) = match &target.part {
                Part::Spans(spans) => {
                    let first = spans[d].first();
                    let first = (!first.terms.is_empty()).then(|| self.sum(w, self.env, &first));
                    firsts.extend(first.map(|first| (d, first)));
                    self.clipped(w, par, &spans[d], (first, extent))
                }
                _ => (zero, extent),
            };
            ranges.push(Range { var, from, to });
            element.push(var);
        }
        w.begin();
        let mut index = element.clone();
        for (d, first) in firsts {
            index[d] = w.add(first, element[d]);
        }
        let Some(index) = Indices::new(&index) else {
            w.end();
            return Ok(None);
        };
        if let Some(total) = self.collected(w, (par, forwarding), all, (target, &element))? {
            if self.is_first(par, all, target) {
                self.stored_rows.insert(array);
                w.store(shadow, index, total, par.site.clone());
            } else {
                // Where it stands for zeros, what flows to it is all that it holds.
                let site = par.site.clone();
                match self.shadow_states.get(&array).copied() {
                    _ if is_part => w.accumulate(shadow, index, total, site),
                    Some(ShadowState::Numbers) => w.accumulate(shadow, index, total, site),
                    Some(ShadowState::NumbersOutside(id)) => {
                        let Some(condition) = self.is_in_box(w, par, id, &element) else { return Ok(None) };
                        let then = w.block(|w| w.store(shadow, index, total, site.clone()));
                        let otherwise = w.block(|w| w.accumulate(shadow, index, total, site));
                        w.push(Stmt::If(Branch { condition, then, otherwise }));
                    }
                    _ => w.store(shadow, index, total, site),
                }
            }
        }
        let body = w.end();
        let body = prune(&w.program, body);
        let id = w.new_par();
        self.shadow_states.insert(array, ShadowState::Numbers);
        let gather = Par { site: par.site.clone(), ..Par::over(id, ranges, body) };
        if !is_part {
            return Ok(Some(Gather { array, par: gather }));
        }
        let gather = Par { requires: requirements(par, self.env), safety: Safety::Proved, ..gather };
        w.push(match exists {
            // A row that the loop reads under a condition, or has no iterations to read, need not exist.
            Some(condition) => {
                Stmt::If(Branch { condition, then: vec![Stmt::Par(gather)], otherwise: Vec::new() })
            }
            None => Stmt::Par(gather),
        });
        Ok(None)
    }

    /// Is what the target's loads gather all that its elements hold?
    pub(super) fn is_first(&self, par: &Par, all: &[Site], target: &Target) -> bool {
        let Some(first) = self.first_rows.get(&target.array).filter(|first| first.par == par.id) else {
            return false;
        };
        let is_whole_row = match (&target.part, &first.rows) {
            (Part::Row(fixed), Subarray::Box(bounds)) => {
                matches!((&fixed[..], &bounds[..]), ([(d, _)], [(dimension, _)]) if d == dimension)
            }
            (Part::Spans(_), Subarray::Stripes(_)) => true,
            _ => false,
        };
        is_whole_row
            && all.iter().filter(|site| site.1 == target.array).all(|site| target.loads.contains(&site.0))
    }

    /// The part of a span that exists, counted from its `first` element where there is one.
    fn clipped(
        &self,
        w: &mut Writer,
        par: &Par,
        span: &Span,
        (first, extent): (Option<ValueId>, ValueId),
    ) -> (ValueId, ValueId) {
        let range = &par.ranges[span.variable];
        let mut bound = |v: ValueId, by: i64| {
            let v = mapped(self.env, v);
            if by == 0 {
                return v;
            }
            let by = w.index(by);
            w.add(v, by)
        };
        let (from, to) = (bound(range.from, span.least.constant), bound(range.to, span.most.constant));
        let zero = w.index(0);
        let (low, high) = match first {
            Some(first) => (w.sub(zero, first), w.sub(extent, first)),
            None => (zero, extent),
        };
        (w.binary(Binary::Max, from, low), w.binary(Binary::Min, to, high))
    }

    /// The sum of what flows to an element from the loads of the target.
    fn collected(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        all: &[Site],
        (target, element): (&Target, &[ValueId]),
    ) -> Result<Option<ValueId>, Error> {
        let array = target.array;
        let varies = varying(self.source, par);
        let mut sum: Option<ValueId> = None;
        let mut local = None;
        for (number, site) in all.iter().enumerate().filter(|(_, s)| target.loads.contains(&s.0)) {
            let Some(mut inverse) = invert(self.source, self.affines, par, &varies, site.2) else { continue };
            match &target.part {
                Part::All => {}
                Part::Row(_) => inverse.fixed.clear(),
                Part::Spans(spans) => inverse.count_from(spans),
            }
            if self.is_conditional(par, site, &inverse) && local.is_none() {
                let start = match sum.take() {
                    Some(sum) => sum,
                    None => w.real(self.source.array(array).ty, 0.0),
                };
                local = Some(w.sum(start));
            }
            let sink = local.map_or(Sink::Value, Sink::Local);
            let found =
                self.turn_round(w, (par, forwarding), array, &inverse, element, vec![(number, sink)])?;
            if let (Some(found), None) = (found, local) {
                sum = Some(match sum {
                    Some(sum) => w.add(sum, found),
                    None => found,
                });
            }
        }
        Ok(local.map(|local| w.get(local)).or(sum))
    }

    /// Do conditions or loops lead from an element to the iterations that read it through this load?
    pub(super) fn is_conditional(&self, par: &Par, site: &Site, inverse: &Inverse) -> bool {
        let nested = !par.body.iter().any(|s| matches!(s, Stmt::Let(v) if *v == site.0));
        let always = |(k, variable): (usize, &Variable)| match variable {
            Variable::Wrapped { dimension, modulus, .. } => {
                is_dim(self.source, self.affines, site.1, *dimension, *modulus)
            }
            _ => self.reads_all(par, k, variable, site.1),
        };
        nested || !inverse.fixed.is_empty() || !inverse.variables.iter().enumerate().all(always)
    }

    /// Does the variable run over all of the array's dimension, so that every element is read at its own index?
    fn reads_all(&self, par: &Par, k: usize, variable: &Variable, array: ArrayId) -> bool {
        let range = &par.ranges[k];
        match variable {
            Variable::Shifted { dimension, sign: 1, rest } => {
                rest.as_constant() == Some(0) && self.runs_over(range, array, *dimension)
            }
            _ => false,
        }
    }

    /// Is the range all of the array's dimension?
    pub(crate) fn runs_over(&self, range: &Range, array: ArrayId, dimension: usize) -> bool {
        is_zero(self.source, range.from) && is_dim(self.source, self.affines, array, dimension, range.to)
    }

    /// Writes what flows to element `k` from the iterations that read it through one load, and what flows to others through loads
    /// beside it.
    pub(super) fn turn_round(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        array: ArrayId,
        inverse: &Inverse,
        element: &[ValueId],
        sites: Vec<(usize, Sink)>,
    ) -> Result<Option<ValueId>, Error> {
        let mut map = self.env.clone();
        // Blocks that are open: under a condition, or for each value of a variable.
        let mut open: Vec<(ValueId, Option<(ValueId, Range)>)> = Vec::new();
        // Conditions for which no block was opened yet: as many as can be are one.
        let mut asked: Option<ValueId> = None;
        if self.fails_early(inverse) {
            for range in &par.ranges {
                let (from, to) = (mapped(&map, range.from), mapped(&map, range.to));
                let some = w.compare(Compare::Lt, from, to);
                asked = Some(both(w, asked, some));
            }
            open.extend(asked.take().map(|some| (some, None)));
            w.begin();
        }
        for (dimension, v) in &inverse.fixed {
            let at = self.sum(w, &map, self.affines.form(*v));
            let condition = w.compare(Compare::Eq, element[*dimension], at);
            asked = Some(both(w, asked, condition));
        }
        for (k, (range, variable)) in par.ranges.iter().zip(&inverse.variables).enumerate() {
            let (from, to) = (mapped(&map, range.from), mapped(&map, range.to));
            match variable {
                Variable::Wrapped { dimension, sign, rest, modulus: of } => {
                    let modulus = self.sum(w, &map, self.affines.form(*of));
                    if !is_dim(self.source, self.affines, array, *dimension, *of) {
                        // Elements beyond the modulus belong to no iteration; where there are others, it is not zero.
                        let below = w.compare(Compare::Lt, element[*dimension], modulus);
                        open.push((both(w, asked.take(), below), None));
                        w.begin();
                    }
                    let rest = self.sum(w, &map, rest);
                    let x = if *sign > 0 {
                        w.sub(element[*dimension], rest)
                    } else {
                        w.sub(rest, element[*dimension])
                    };
                    let i = w.binary(Binary::RemEuclid, x, modulus);
                    map.insert(range.var, i);
                }
                Variable::Shifted { dimension, .. } if self.reads_all(par, k, variable, array) => {
                    map.insert(range.var, element[*dimension]);
                }
                Variable::Shifted { dimension, sign, rest } => {
                    let i = match rest.as_constant() {
                        Some(0) if *sign > 0 => element[*dimension],
                        Some(back) if *sign > 0 && back < 0 && back != i64::MIN => {
                            let ahead = w.index(-back);
                            w.add(element[*dimension], ahead)
                        }
                        _ => {
                            let (a, b) = (element[*dimension], self.sum(w, &map, rest));
                            if *sign > 0 { w.sub(a, b) } else { w.sub(b, a) }
                        }
                    };
                    let condition = within(w, i, from, to);
                    asked = Some(both(w, asked, condition));
                    map.insert(range.var, i);
                }
                Variable::Free => {
                    if let Some(condition) = asked.take() {
                        open.push((condition, None));
                        w.begin();
                    }
                    let var = w.loop_var("i");
                    open.push((from, Some((var, Range { var, from, to }))));
                    w.begin();
                    map.insert(range.var, var);
                }
            }
        }
        if let Some(condition) = asked {
            open.push((condition, None));
            w.begin();
        }
        let purpose = Purpose::Sites(sites);
        let beside = (self.shadows, self.extremes);
        let body = (&par.body, forwarding);
        let task = Task::new(self.source, self.activity, beside, purpose, map, body);
        let found = task.write(w, &par.body)?;
        for (condition, free) in open.into_iter().rev() {
            let then = w.end();
            match free {
                None => w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() })),
                Some((var, range)) => {
                    let id = w.new_loop();
                    let kind = LoopKind::For { var, from: range.from, to: range.to };
                    w.push(Stmt::Loop(Loop {
                        id,
                        kind,
                        body: then,
                        sums: Vec::new(),
                        until: None,
                        schedule: None,
                    }));
                }
            }
        }
        Ok(found)
    }

    /// Writes a sum of program-level values.
    pub(super) fn sum(&self, w: &mut Writer, map: &HashMap<ValueId, ValueId>, form: &Affine) -> ValueId {
        let mut total: Option<ValueId> =
            (form.constant != 0 || form.terms.is_empty()).then(|| w.index(form.constant));
        for (atom, coefficient) in &form.terms {
            let mut term = self.atom(w, map, *atom);
            if *coefficient != 1 {
                let factor = w.index(*coefficient);
                term = w.mul(factor, term);
            }
            total = Some(match total {
                Some(total) => w.add(total, term),
                None => term,
            });
        }
        total.unwrap_or_else(|| w.index(0))
    }

    /// An atom may be a value of the loop's body that is the same in all iterations: it is computed here then.
    fn atom(&self, w: &mut Writer, map: &HashMap<ValueId, ValueId>, v: ValueId) -> ValueId {
        match *self.source.op(v) {
            Op::LoopVar | Op::Get(_) | Op::Load(..) => mapped(map, v),
            op => {
                // The depth of recursion is that of one index expression.
                let op = op.map(|o| self.atom(w, map, o));
                w.value(op, self.source.ty(v))
            }
        }
    }
}
