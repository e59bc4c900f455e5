//! Loops that gather: each element of a shadow collects what flows to it, at the iterations that read the element.

use std::collections::HashMap;

use ebbtide_ir::{
    Affine, ArrayId, Binary, Branch, Compare, Indices, Loop, LoopKind, Op, Par, Range, Stmt, ValueId, is_zero,
};

use super::{Gather, ParAdjoint, mapped};
use crate::analysis::index_inverse::{Inverse, Variable, invert, is_dim, varying};
use crate::analysis::store_forwarding::StoreForwarding;
use crate::error::Error;
use crate::generate::task::{Purpose, Sink, Task};
use crate::plan::shadow_state::ShadowState;
use crate::writer::prune::prune;
use crate::writer::{Writer, both, within};

impl ParAdjoint<'_> {
    /// A loop over all elements of the shadow of `array`, each collecting what flows to it.
    pub(super) fn gather(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        all: &[(ValueId, ArrayId, Indices)],
        array: ArrayId,
    ) -> Result<Option<Gather>, Error> {
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return Ok(None) };
        let (ty, rank) = (self.source.array(array).ty, self.source.array(array).rank);
        let varies = varying(self.source, par);
        let zero = w.index(0);
        let ranges: Vec<Range> = (0..rank)
            .map(|d| {
                let to = w.dim(shadow, d);
                Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
            })
            .collect();
        let element: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
        let Some(index) = Indices::new(&element) else { return Ok(None) };
        w.begin();
        let mut sum: Option<ValueId> = None;
        let mut local = None;
        for (number, site) in all.iter().enumerate().filter(|(_, s)| s.1 == array) {
            let Some(inverse) = invert(self.source, self.affines, par, &varies, site.2) else { continue };
            let nested = !par.body.iter().any(|s| matches!(s, Stmt::Let(v) if *v == site.0));
            let always = |(k, variable): (usize, &Variable)| match variable {
                Variable::Wrapped { dimension, modulus, .. } => {
                    is_dim(self.source, self.affines, array, *dimension, *modulus)
                }
                _ => self.reads_all(par, k, variable, array),
            };
            let conditional =
                nested || !inverse.fixed.is_empty() || !inverse.variables.iter().enumerate().all(always);
            if conditional && local.is_none() {
                let start = match sum.take() {
                    Some(sum) => sum,
                    None => w.real(ty, 0.0),
                };
                local = Some(w.sum(start));
            }
            let sink = local.map_or(Sink::Value, Sink::Local);
            let found = self.turn_round(w, (par, forwarding), array, &inverse, &element, (number, sink))?;
            if let (Some(found), None) = (found, local) {
                sum = Some(match sum {
                    Some(sum) => w.add(sum, found),
                    None => found,
                });
            }
        }
        let total = match (local, sum) {
            (Some(local), _) => Some(w.get(local)),
            (None, sum) => sum,
        };
        if let Some(total) = total {
            if self.shadow_states.get(&array) == Some(&ShadowState::Numbers) {
                w.accumulate(shadow, index, total, par.site.clone());
            } else {
                // It stands for zeros: what flows to it is all that it holds.
                w.store(shadow, index, total, par.site.clone());
            }
        }
        let body = w.end();
        let body = prune(&w.program, body);
        let id = w.new_par();
        self.shadow_states.insert(array, ShadowState::Numbers);
        let par = Par { site: par.site.clone(), ..Par::over(id, ranges, body) };
        Ok(Some(Gather { array, par }))
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

    /// Writes what flows to element `k` from the iterations that read it through one load.
    fn turn_round(
        &mut self,
        w: &mut Writer,
        (par, forwarding): (&Par, &StoreForwarding),
        array: ArrayId,
        inverse: &Inverse,
        element: &[ValueId],
        (number, sink): (usize, Sink),
    ) -> Result<Option<ValueId>, Error> {
        let mut map = self.env.clone();
        // Blocks that are open: under a condition, or for each value of a variable.
        let mut open: Vec<(ValueId, Option<(ValueId, Range)>)> = Vec::new();
        // Conditions for which no block was opened yet: as many as can be are one.
        let mut asked: Option<ValueId> = None;
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
                        // Elements beyond the modulus are nobody's; where there are others, it is not zero.
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
        let purpose = Purpose::Site { number, into: sink };
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
    fn sum(&self, w: &mut Writer, map: &HashMap<ValueId, ValueId>, form: &Affine) -> ValueId {
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
