//! A small instance in which two iterations meet: extents, scalars, the iterations and the element.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::context::Access;
use super::formula::Formula;
use super::poly::{Atom, Poly};
use super::terms::{Key, Terms};
use crate::syntax::*;

/// Two iterations that touch one element.
#[derive(Clone, Debug)]
pub struct Witness {
    /// What is the same in all iterations, and what it is.
    pub given: Vec<(Key, i64)>,
    pub first: Vec<i64>,
    pub second: Vec<i64>,
    pub element: Vec<i64>,
    /// Is everything that decides about it known? It is not where data do.
    pub exact: bool,
}

/// The question: a parallel loop and two of its accesses.
pub struct Question<'a> {
    pub facts: &'a [Formula],
    pub domain: &'a [Formula],
    pub variables: &'a [ValueId],
    pub accesses: [&'a Access; 2],
    /// Must the iterations differ?
    pub different: bool,
}

/// How many instances are tried.
const TRIALS: usize = 20_000;

type Values = HashMap<Atom, i128>;

/// Searches small instances.
pub fn find(terms: &mut Terms<'_>, question: &Question<'_>) -> Option<Witness> {
    let mut shared: BTreeSet<Atom> = BTreeSet::new();
    let mut own: [BTreeSet<Atom>; 2] = Default::default();
    let mut sides = Vec::new();
    for (access, own) in question.accesses.iter().zip(&mut own) {
        let mut polys: Vec<Poly> = access.index.clone();
        for formula in question.domain.iter().chain(access.guards.iter()) {
            formula.visit(&mut |p| polys.push(p.clone()));
        }
        for k in 0..access.index.len() {
            polys.push(terms.dim(access.array, k as u8));
        }
        let mut atoms = BTreeSet::new();
        polys.iter().for_each(|p| base(terms, p, &mut atoms));
        let variables: Vec<Atom> =
            question.variables.iter().map(|v| terms.atom(Key::Value(*v), true)).collect();
        atoms.extend(&variables);
        let extents: Vec<Poly> = (0..access.index.len()).map(|k| terms.dim(access.array, k as u8)).collect();
        sides.push((variables, extents));
        for atom in atoms {
            if terms.varies(atom) {
                own.insert(atom)
            } else {
                shared.insert(atom)
            };
        }
    }
    let shared: Vec<Atom> = shared.into_iter().collect();
    let loop_variable =
        |a: &Atom| matches!(terms.key(*a), Key::Value(v) if *terms.program.op(*v) == Op::LoopVar);
    let unknown = question.accesses.iter().any(|a| a.guards.iter().any(has_unknown));
    let exact = own.iter().flatten().all(loop_variable) && !unknown;
    let mut search = Search { terms, question, trials: TRIALS };
    for limit in [2, 4, 9] {
        let mut found = None;
        search.each(&shared, limit, &mut Values::new(), &mut |search, given| {
            found = search.meeting(given, &own, &sides, limit);
            found.is_some()
        });
        if let Some((first, second, element)) = found.as_ref().map(|f: &Found| f.meeting.clone()) {
            let given = found.map(|f| f.given).unwrap_or_default();
            let given =
                shared.iter().filter_map(|a| Some((search.terms.key(*a).clone(), *given.get(a)? as i64)));
            let given = given.collect();
            return Some(Witness { given, first, second, element, exact });
        }
    }
    None
}

struct Found {
    meeting: (Vec<i64>, Vec<i64>, Vec<i64>),
    given: Values,
}

fn has_unknown(formula: &Formula) -> bool {
    match formula {
        Formula::Unknown => true,
        Formula::All(parts) | Formula::Any(parts) => parts.iter().any(has_unknown),
        _ => false,
    }
}

/// The atoms of which others are made.
fn base(terms: &Terms<'_>, poly: &Poly, into: &mut BTreeSet<Atom>) {
    for atom in poly.atoms() {
        match terms.key(atom) {
            Key::Quotient(a, b) | Key::Remainder(a, b) | Key::Least(a, b) | Key::Greatest(a, b) => {
                base(terms, a, into);
                base(terms, b, into);
            }
            _ => drop(into.insert(atom)),
        }
    }
}

struct Search<'s, 'p, 'q> {
    terms: &'s mut Terms<'p>,
    question: &'s Question<'q>,
    trials: usize,
}

impl Search<'_, '_, '_> {
    /// Tries all assignments up to a limit until one is found. The depth of recursion is the number of atoms.
    fn each(
        &mut self,
        atoms: &[Atom],
        limit: i128,
        values: &mut Values,
        visit: &mut dyn FnMut(&mut Self, &Values) -> bool,
    ) -> bool {
        let Some((atom, rest)) = atoms.split_first() else {
            self.trials = self.trials.saturating_sub(1);
            return self.trials == 0 || visit(self, values);
        };
        // What is nothing at all is the last thing to try.
        for value in (1..=limit).chain([0]) {
            values.insert(*atom, value);
            if self.each(rest, limit, values, visit) {
                return true;
            }
        }
        values.remove(atom);
        false
    }

    fn poly(&self, values: &Values, poly: &Poly) -> Option<i128> {
        let mut sum = 0i128;
        for (monomial, c) in &poly.terms {
            let mut product = *c;
            for atom in monomial {
                product = product.checked_mul(self.atom(values, *atom)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    fn atom(&self, values: &Values, atom: Atom) -> Option<i128> {
        let both = |a: &Poly, b: &Poly| Some((self.poly(values, a)?, self.poly(values, b)?));
        match self.terms.key(atom) {
            Key::Quotient(a, b) => both(a, b).and_then(|(a, b)| a.checked_div(b)),
            Key::Remainder(a, b) => both(a, b).and_then(|(a, b)| a.checked_rem(b)),
            Key::Least(a, b) => both(a, b).map(|(a, b)| a.min(b)),
            Key::Greatest(a, b) => both(a, b).map(|(a, b)| a.max(b)),
            _ => values.get(&atom).copied(),
        }
    }

    /// Does it hold, or may it?
    fn holds(&self, values: &Values, formula: &Formula) -> bool {
        formula.evaluate(&mut |p| self.poly(values, p)) != Some(false)
    }

    fn meeting(
        &mut self,
        given: &Values,
        own: &[BTreeSet<Atom>; 2],
        sides: &[(Vec<Atom>, Vec<Poly>)],
        limit: i128,
    ) -> Option<Found> {
        if !self.question.facts.iter().all(|f| self.holds(given, f)) {
            return None;
        }
        let mut touched: BTreeMap<Vec<i64>, Vec<Vec<i64>>> = BTreeMap::new();
        let mut result = None;
        for side in 0..2 {
            let atoms: Vec<Atom> = own[side].iter().copied().collect();
            let (variables, extents) = &sides[side];
            let access = self.question.accesses[side];
            let mut values = given.clone();
            self.each(&atoms, limit, &mut values, &mut |search, values| {
                let guards = search.question.domain.iter().chain(access.guards.iter());
                let here = guards.clone().all(|g| search.holds(values, g));
                let index: Option<Vec<i64>> =
                    access.index.iter().map(|p| search.poly(values, p).map(|x| x as i64)).collect();
                let (true, Some(index)) = (here, index) else { return false };
                let within = index.iter().zip(extents).all(|(i, extent)| {
                    *i >= 0 && search.poly(values, extent).is_none_or(|e| i128::from(*i) < e)
                });
                if !within {
                    return false;
                }
                let iteration: Vec<i64> = variables.iter().map(|v| values[v] as i64).collect();
                if side == 0 {
                    let others = touched.entry(index).or_default();
                    if !others.contains(&iteration) {
                        others.push(iteration);
                    }
                    return false;
                }
                let different = search.question.different;
                let other =
                    touched.get(&index).and_then(|t| t.iter().find(|o| !different || **o != iteration));
                if let Some(other) = other {
                    result = Some((other.clone(), iteration, index));
                }
                result.is_some()
            });
        }
        result.map(|meeting| Found { meeting, given: given.clone() })
    }
}
