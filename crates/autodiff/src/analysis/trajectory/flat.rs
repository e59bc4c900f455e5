//! Rows that lie one behind the other in an array of rank 1.
//!
//! An index is `t · stride + rest`, where the rest lies between two bounds that are the same in all iterations: the ranges of the
//! other variables in it tell. With the least and the greatest rest of each access, nothing that an iteration has read is written
//! later if no write of an iteration reaches the first write of the next one, and no read reaches the first write of its own.
//! Differences of bounds decide that where they are numbers.

use std::collections::BTreeMap;

use ebbtide_ir::{Affines, Loop, LoopKind, Program, Stmt, ValueId, walk};

use super::{Kind, Touch};
use crate::analysis::polynomial::{Atom, Polynomial};

/// The ranges of the variables in a loop.
pub(super) struct Ranges<'a> {
    source: &'a Program,
    affines: &'a Affines,
    /// The variable of the loop itself.
    var: Option<ValueId>,
    /// By variable of a loop in it: its bounds.
    bounds: BTreeMap<ValueId, (ValueId, ValueId)>,
}

/// Where an access touches the array in an iteration of the loop.
struct Reach {
    stride: Polynomial,
    least: Polynomial,
    greatest: Polynomial,
}

impl<'a> Ranges<'a> {
    pub fn of(source: &'a Program, affines: &'a Affines, l: &Loop) -> Ranges<'a> {
        let var = if let LoopKind::For { var, .. } = l.kind { Some(var) } else { None };
        let mut bounds = BTreeMap::new();
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Par(par) => bounds.extend(par.ranges.iter().map(|r| (r.var, (r.from, r.to)))),
            Stmt::Loop(Loop { kind: LoopKind::For { var, from, to }, .. }) => {
                bounds.insert(*var, (*from, *to));
            }
            _ => {}
        });
        Ranges { source, affines, var, bounds }
    }

    /// Is nothing that an iteration reads written by itself afterwards, or by a later one?
    pub fn prove(&self, touches: &[Touch], invariant: &dyn Fn(ValueId) -> bool) -> bool {
        let reach = |touch: &Touch| Some((touch.at, touch.kind, self.reach(touch, invariant)?));
        let Some(all) = touches.iter().map(reach).collect::<Option<Vec<_>>>() else { return false };
        let Some(stride) = all.first().map(|(_, _, reach)| reach.stride.clone()) else { return false };
        let is_write = |(_, kind, _): &&(usize, Kind, Reach)| *kind != Kind::Read;
        // Where a write runs at all, this makes the stride positive; where none does, nothing is overwritten.
        let ends_before_next = |a: &Reach, b: &Reach| {
            b.least.add_scaled(&stride, 1).is_some_and(|next| a.greatest.is_below(&next))
        };
        all.iter().all(|(_, _, reach)| reach.stride == stride)
            && all.iter().filter(is_write).all(|(first, _, write)| {
                all.iter().all(|(at, kind, other)| match kind {
                    Kind::Read => {
                        other.greatest.is_below(&write.least)
                            || (at > first && ends_before_next(other, write))
                    }
                    _ => ends_before_next(other, write),
                })
            })
    }

    fn reach(&self, touch: &Touch, invariant: &dyn Fn(ValueId) -> bool) -> Option<Reach> {
        let &[index] = touch.index.as_slice() else { return None };
        let (mut stride, mut rest) = (Polynomial::constant(0), Polynomial::constant(0));
        let (mut least, mut greatest) = (Polynomial::constant(0), Polynomial::constant(0));
        for (monomial, c) in self.polynomial(index)?.terms {
            let variable = |atom: &Atom| match atom {
                Atom::Value(v) if Some(*v) == self.var || self.bounds.contains_key(v) => Some(*v),
                _ => None,
            };
            let variables: Vec<ValueId> = monomial.iter().filter_map(variable).collect();
            let known =
                |atom: &Atom| matches!(atom, Atom::Value(v) if variables.contains(v) || invariant(*v));
            if !monomial.iter().all(known) {
                return None;
            }
            let others = || monomial.iter().filter(|atom| variable(atom).is_none()).cloned();
            let product =
                others().try_fold(Polynomial::constant(c), |p, atom| p.mul(&Polynomial::atom(atom)))?;
            match *variables.as_slice() {
                [] => rest = rest.add_scaled(&product, 1)?,
                [v] if Some(v) == self.var => stride = stride.add_scaled(&product, 1)?,
                // Its greatest value is one less than the end of its range.
                [v] if others().next().is_none() => {
                    let (from, to) = self.bounds.get(&v)?;
                    let fixed = |v: ValueId| invariant(v).then(|| self.polynomial(v)).flatten();
                    let (from, to) = (fixed(*from)?, fixed(*to)?.add_scaled(&Polynomial::constant(1), -1)?);
                    let (low, high) = if c > 0 { (&from, &to) } else { (&to, &from) };
                    least = least.add_scaled(low, c)?;
                    greatest = greatest.add_scaled(high, c)?;
                }
                _ => return None,
            }
        }
        Some(Reach { stride, least: least.add_scaled(&rest, 1)?, greatest: greatest.add_scaled(&rest, 1)? })
    }

    fn polynomial(&self, v: ValueId) -> Option<Polynomial> {
        Polynomial::expanded(self.source, self.affines, self.affines.form(v))
    }
}
