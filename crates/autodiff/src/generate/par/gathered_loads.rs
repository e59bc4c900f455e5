//! Which loads of a parallel loop are turned round, and into what they gather.
//!
//! - Input: a parallel loop, its loads of active arrays, and the arrays that it writes.
//! - Output: targets, each an array or a part of one, and the loads of what it holds.
//! - Invariant: no load belongs to two targets, and no write of the loop touches an element of a part, read or not, so that the loop
//!   that gathers into it reads nothing that it changes.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affine, ArrayId, Binary, Indices, Literal, Op, Par, Stmt, ValueId, walk};

use super::{ParAdjoint, Site, overwrites_itself};
use crate::analysis::effects::written_by;
use crate::analysis::index_inverse::{Inverse, Variable, invert, is_own, varying};
use crate::analysis::polynomial::Polynomial;
use crate::plan::scratch_arrays::Domain;
use crate::request::Optimisation;

/// Elements that collect what flows to them, and the loads that read them.
pub(crate) struct Target {
    pub array: ArrayId,
    pub part: Part,
    pub loads: BTreeSet<ValueId>,
}

/// Which elements of an array gather.
pub(crate) enum Part {
    All,
    /// Those of a row: in these dimensions the index is the same in all loads.
    Row(Vec<(usize, ValueId)>),
    /// Those between the first and the last that the loads read, in each dimension.
    Spans(Vec<Span>),
}

/// What loads read along one dimension: from the start of the range of this parallel variable and `least` to its end and `most`.
pub(crate) struct Span {
    pub variable: usize,
    pub least: Affine,
    pub most: Affine,
}

impl Span {
    /// The element from which those of the span are counted: what its indices have in common, but for numbers.
    pub fn first(&self) -> Affine {
        Affine { constant: 0, ..self.least.clone() }
    }
}

impl Inverse {
    /// Lets variables follow from elements that are counted from the first ones of these spans.
    pub fn count_from(&mut self, spans: &[Span]) {
        for variable in &mut self.variables {
            if let Variable::Shifted { dimension, rest, .. } = variable
                && let Some(counted) = rest.add_scaled(&spans[*dimension].first(), -1)
            {
                *rest = counted;
            }
        }
    }
}

/// A load and how it is turned round.
struct Turned {
    site: Site,
    inverse: Inverse,
}

impl ParAdjoint<'_> {
    /// What gathers, the arrays first. Iterations add to the shadows of what each of them loads alone, of the arrays in `own`.
    pub(super) fn targets(
        &self,
        par: &Par,
        all: &[Site],
        (written, own): (&BTreeSet<ArrayId>, &BTreeSet<ArrayId>),
    ) -> Vec<Target> {
        // A gather takes each load by itself and writes no shadow: where an iteration overwrites what it wrote, nothing
        // would tell the earlier write that nothing saw it.
        if written_by(par).iter().any(|array| overwrites_itself(par, *array)) {
            return Vec::new();
        }
        // It would run inner loops again for each load; where iterations can keep what flows, they are run once.
        let mut loops = false;
        walk(&par.body, &mut |stmt| loops |= matches!(stmt, Stmt::Loop(_)));
        if loops && Domain::of(self.source, self.affines, &par.ranges).is_some() {
            return Vec::new();
        }
        let varies = varying(self.source, par);
        let mut turned: BTreeMap<ArrayId, Vec<Option<Turned>>> = BTreeMap::new();
        for site in all.iter().filter(|site| !own.contains(&site.1)) {
            let inverse = invert(self.source, self.affines, par, &varies, site.2);
            let inverse = inverse.map(|inverse| Turned { site: *site, inverse });
            turned.entry(site.1).or_default().push(inverse);
        }
        let rows = !self.without.contains(&Optimisation::GatherRows);
        let (mut arrays, mut parts) = (Vec::new(), Vec::new());
        for (array, loads) in turned {
            let every: Option<Vec<&Turned>> = loads.iter().map(Option::as_ref).collect();
            match (written.contains(&array), every) {
                (true, _) if rows => {
                    let loads: Vec<&Turned> = loads.iter().flatten().filter(|t| is_own(&t.inverse)).collect();
                    let targets = self.rows(array, &loads).into_iter().chain(self.between(array, &loads));
                    parts.extend(targets.filter(|target| self.is_never_written(par, target)));
                }
                (false, Some(every)) if rows && every.iter().all(|t| self.is_row(&t.inverse)) => {
                    parts.extend(self.rows(array, &every));
                }
                (false, Some(every)) if self.is_worth_turning(&every) => {
                    let loads = every.iter().map(|t| t.site.0).collect();
                    arrays.push(Target { array, part: Part::All, loads });
                }
                _ => {}
            }
        }
        arrays.extend(parts);
        arrays
    }

    /// The rows that loads read, but for those whose elements belong to one iteration each.
    fn rows(&self, array: ArrayId, loads: &[&Turned]) -> Vec<Target> {
        let mut rows: Vec<Vec<&Turned>> = Vec::new();
        let row = |t: &Turned| -> Vec<(usize, &Affine)> {
            t.inverse.fixed.iter().map(|(d, v)| (*d, self.affines.form(*v))).collect()
        };
        for load in loads.iter().filter(|t| self.is_row(&t.inverse)) {
            match rows.iter_mut().find(|known| row(known[0]) == row(load)) {
                Some(known) => known.push(load),
                None => rows.push(vec![load]),
            }
        }
        rows.into_iter()
            .filter(|row| self.is_worth_turning(row))
            .map(|row| Target {
                array,
                part: Part::Row(row[0].inverse.fixed.clone()),
                loads: row.iter().map(|t| t.site.0).collect(),
            })
            .collect()
    }

    /// What loads read that run through all dimensions and differ by constants: rows of a flat array, halves.
    fn between(&self, array: ArrayId, loads: &[&Turned]) -> Vec<Target> {
        let mut groups: Vec<(Vec<Span>, Vec<&Turned>)> = Vec::new();
        for load in loads.iter().filter(|t| t.inverse.fixed.is_empty()) {
            let Some(spans) = self.spans(load) else { continue };
            match groups.iter_mut().find_map(|group| Some((joined(&group.0, &spans)?, group))) {
                Some((wider, group)) => {
                    group.0 = wider;
                    group.1.push(load);
                }
                None => groups.push((spans, vec![load])),
            }
        }
        groups
            .into_iter()
            .filter(|(_, loads)| self.is_worth_turning(loads))
            .map(|(spans, loads)| Target {
                array,
                part: Part::Spans(spans),
                loads: loads.iter().map(|t| t.site.0).collect(),
            })
            .collect()
    }

    /// What one load reads, in each dimension.
    fn spans(&self, load: &Turned) -> Option<Vec<Span>> {
        let index = load.site.2;
        let mut spans: Vec<Option<Span>> = index.as_slice().iter().map(|_| None).collect();
        for (k, variable) in load.inverse.variables.iter().enumerate() {
            let Variable::Shifted { dimension, sign: 1, rest } = variable else { return None };
            spans[*dimension] = Some(Span { variable: k, least: rest.clone(), most: rest.clone() });
        }
        if index.as_slice().iter().any(|v| self.may_fault(*v)) {
            return None;
        }
        spans.into_iter().collect()
    }

    /// Is an index the same in all iterations, so that what is read is a part of the array? It is computed where the loop may
    /// have no iterations: so it must not fail.
    fn is_row(&self, inverse: &Inverse) -> bool {
        !inverse.fixed.is_empty() && inverse.fixed.iter().all(|(_, v)| !self.may_fault(*v))
    }

    /// Can what leads from an element to iterations fail, other than what is computed before the loop? It is computed also where
    /// the loop has no iterations.
    pub(super) fn fails_early(&self, inverse: &Inverse) -> bool {
        let added = inverse.variables.iter().flat_map(|variable| match variable {
            Variable::Shifted { rest, .. } | Variable::Wrapped { rest, .. } => rest.terms.as_slice(),
            Variable::Free => &[],
        });
        let mut all = added.map(|term| term.0).chain(inverse.fixed.iter().map(|(_, v)| *v));
        all.any(|v| !self.env.contains_key(&v) && self.may_fault(v))
    }

    fn may_fault(&self, v: ValueId) -> bool {
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if self.can_fail(v) {
                return true;
            }
            match *self.source.op(v) {
                Op::Load(..) | Op::Get(_) | Op::LoopVar => {}
                op => work.extend(op.operands()),
            }
        }
        false
    }

    /// Is this a division whose divisor may be zero?
    fn can_fail(&self, v: ValueId) -> bool {
        let divisor = match *self.source.op(v) {
            Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, divisor) => divisor,
            _ => return false,
        };
        self.source.literal(divisor).and_then(Literal::to_i64).is_none_or(|d| d == 0)
    }

    /// One element for each iteration is its own; one element for all iterations is a reduction. Is it anything else?
    fn is_worth_turning(&self, loads: &[&Turned]) -> bool {
        let Some(first) = loads.first() else { return false };
        let forms =
            |i: &Indices| i.as_slice().iter().map(|v| self.affines.form(*v).clone()).collect::<Vec<_>>();
        let same = loads.iter().all(|t| forms(&t.site.2) == forms(&first.site.2));
        let nothing_to_turn = first.inverse.variables.iter().all(|v| matches!(v, Variable::Free));
        !(same && (is_own(&first.inverse) || nothing_to_turn))
    }

    /// Is the loop certain to write no element of the target?
    fn is_never_written(&self, par: &Par, target: &Target) -> bool {
        let mut writes = Vec::new();
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Store(s) | Stmt::Update(_, s) if s.array == target.array => writes.push(s.index),
            _ => {}
        });
        writes.iter().all(|write| match &target.part {
            Part::All => false,
            Part::Row(fixed) => fixed.iter().any(|(d, v)| self.differ(*v, write.as_slice()[*d])),
            Part::Spans(spans) => {
                spans.iter().zip(write.as_slice()).any(|(span, v)| self.is_beside(par, span, *v))
            }
        })
    }

    /// Are two indices certain to differ? By a constant, or as remainders of what does.
    fn differ(&self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (self.affines.form(a), self.affines.form(b));
        let apart = |a: &Affine, b: &Affine| a.add_scaled(b, -1)?.as_constant();
        let remainder = |form: &Affine| self.affines.remainder(self.source, form.as_atom()?);
        if let (Some((a, m)), Some((b, n))) = (remainder(a), remainder(b)) {
            let modulus = |v: ValueId| self.source.literal(v).and_then(Literal::to_i64).filter(|m| *m > 0);
            let apart = apart(self.affines.form(a), self.affines.form(b));
            return modulus(m).is_some_and(|modulo| {
                modulus(n) == Some(modulo) && apart.is_some_and(|apart| apart % modulo != 0)
            });
        }
        apart(a, b).is_some_and(|apart| apart != 0)
    }

    /// Is an index of the same variable certain to be before or behind the span?
    fn is_beside(&self, par: &Par, span: &Span, index: ValueId) -> bool {
        let range = &par.ranges[span.variable];
        let form = self.affines.form(index);
        if form.coefficient(range.var) != 1 {
            return false;
        }
        let end = |bound: ValueId, by: &Affine| {
            let form = self.affines.form(bound).add_scaled(by, 1)?;
            Polynomial::expanded(self.source, self.affines, &form)
        };
        let rest = form.without(range.var);
        let not_behind = |a: Option<Polynomial>, b: Option<Polynomial>| {
            let next = b.and_then(|b| b.add_scaled(&Polynomial::constant(1), 1));
            a.zip(next).is_some_and(|(a, next)| a.is_below(&next))
        };
        not_behind(end(range.to, &span.most), end(range.from, &rest))
            || not_behind(end(range.to, &rest), end(range.from, &span.least))
    }
}

/// Both, where they differ by constants in each dimension.
fn joined(a: &[Span], b: &[Span]) -> Option<Vec<Span>> {
    let join = |(a, b): (&Span, &Span)| {
        let below = |x: &Affine, y: &Affine| Some(x.add_scaled(y, -1)?.as_constant()? < 0);
        let least = if below(&a.least, &b.least)? { &a.least } else { &b.least };
        let most = if below(&a.most, &b.most)? { &b.most } else { &a.most };
        (a.variable == b.variable).then(|| Span {
            variable: a.variable,
            least: least.clone(),
            most: most.clone(),
        })
    };
    a.iter().zip(b).map(join).collect()
}
