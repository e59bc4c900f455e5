//! The answer for a pair of accesses: never, in this instance, or unless a condition.

use std::collections::BTreeMap;

use super::context::{Access, Context, Kind};
use super::formula::Formula;
use super::invariant::Inside;
use super::mixed_radix::tells_digits_apart;
use super::poly::{Atom, Poly};
use super::refute::Refuter;
use super::system::{Origin, Residual, System};
use super::terms::{Key, Terms};
use super::witness::{Question, Witness, find};
use crate::syntax::*;

/// Which iterations are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Two different ones.
    Different,
    /// Any two, or one with itself.
    Any,
}

/// How hard a proof is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Only where the indices are sums of products of loop variables and invariants.
    Little,
    Full,
}

/// Whether two accesses meet.
pub enum Verdict {
    Never,
    Unless(Formula),
    Conflict(Option<Witness>),
}

/// How long a loop is taken to be where it is asked whether it can be safe at all: a loop that is safe only where it has
/// few iterations is refused.
const LONG: i128 = 8;

/// How many systems are projected for a pair, and for all pairs of an array.
const BUDGET: usize = 80;
const WHOLE_BUDGET: usize = 1_500;

/// The conditions that are simple enough to be asked when a loop begins. Those that are left out can only make the question
/// stricter.
fn simplest(way: &Residual) -> Residual {
    let size = |formula: &Formula| {
        let (mut degree, mut terms) = (0, 0);
        formula.visit(&mut |p| {
            degree = degree.max(p.terms.keys().map(Vec::len).max().unwrap_or(0));
            terms += p.terms.len();
        });
        (degree, terms)
    };
    let mut simple: Residual = way.iter().filter(|f| size(f).0 <= 2 && size(f).1 <= 4).cloned().collect();
    simple.sort_by_key(size);
    simple.truncate(4);
    simple
}

/// The accesses of one array in a parallel loop.
pub struct Pairs<'t, 'p> {
    pub terms: &'t mut Terms<'p>,
    pub accesses: Vec<Access>,
    /// By access: the indices of all that are alike.
    pub(super) merged: Vec<Vec<Indices>>,
    /// By access: is its index the same in all iterations, as it is written?
    fixed: Vec<bool>,
    context: &'t Context,
    domain: &'t [Formula],
    pub(super) variables: Vec<ValueId>,
    /// By variable: where its range begins and ends.
    ranges: Vec<[Poly; 2]>,
    ways: BTreeMap<(usize, usize, Scope), Option<Vec<Residual>>>,
    budget: usize,
}

impl<'t, 'p> Pairs<'t, 'p> {
    pub fn new(
        terms: &'t mut Terms<'p>,
        context: &'t Context,
        domain: &'t [Formula],
        (par, inside): (&Par, &Inside),
        all: Vec<Access>,
    ) -> Pairs<'t, 'p> {
        let mut accesses: Vec<Access> = Vec::new();
        let mut merged: Vec<Vec<Indices>> = Vec::new();
        for access in all {
            let alike = accesses.iter().position(|a| {
                a.kind == access.kind
                    && a.index == access.index
                    && a.guards == access.guards
                    && a.claimed() == access.claimed()
            });
            match alike {
                Some(k) => {
                    merged[k].push(access.values);
                    accesses[k].order.1 = access.order.1;
                    accesses[k].loops.extend(access.loops);
                }
                None => {
                    merged.push(vec![access.values]);
                    accesses.push(access);
                }
            }
        }
        let invariant = |v: &ValueId| inside.is_invariant(terms.program, terms.affines, *v);
        let fixed = merged.iter().map(|all| all.iter().all(|index| index.as_slice().iter().all(invariant)));
        let fixed = fixed.collect();
        let variables = par.ranges.iter().map(|r| r.var).collect();
        let ranges = par.ranges.iter().map(|r| [terms.value(r.from), terms.value(r.to)]).collect();
        let (ways, budget) = (BTreeMap::new(), WHOLE_BUDGET);
        Pairs { terms, accesses, merged, fixed, context, domain, variables, ranges, ways, budget }
    }

    /// The indices of all accesses that are like this one.
    pub fn merged(&self, a: usize) -> impl Iterator<Item = Indices> {
        self.merged[a].iter().copied()
    }

    /// Is the element the same in all iterations, as the loop is written?
    pub fn is_fixed(&self, a: usize) -> bool {
        self.fixed[a]
    }

    /// Do all accesses have one index, which tells iterations apart, or are all of them claimed?
    pub fn all_own(&mut self) -> bool {
        let Some(first) = self.accesses.first() else { return true };
        let claimed = first.claimed();
        if claimed.is_some() && self.accesses.iter().all(|a| a.claimed() == claimed) {
            return true;
        }
        self.one_owner(&(0..self.accesses.len()).collect::<Vec<_>>())
    }

    /// Does each variable have a dimension in which the indices of all these accesses are one function of it and of invariants that
    /// takes each value once, or are the others digits of a flat index? The dimension must be one for all: of three accesses the
    /// first may share one with the second and another one with the third.
    fn one_owner(&mut self, accesses: &[usize]) -> bool {
        let Some((first, others)) = accesses.split_first() else { return true };
        let first = &self.accesses[*first].index;
        let is_shared = |d: usize| others.iter().all(|b| self.accesses[*b].index.get(d) == first.get(d));
        let same: Vec<Poly> = (0..first.len()).filter(|d| is_shared(*d)).map(|d| first[d].clone()).collect();
        let alone = |v: usize, pairs: &mut Self| same.iter().any(|index| pairs.tells_apart(v, index));
        let left: Vec<usize> = (0..self.variables.len()).filter(|v| !alone(*v, self)).collect();
        left.is_empty() || same.iter().any(|index| self.tells_all_apart(&left, index, accesses))
    }

    /// Is the index a flat one, of which all these variables are digits?
    fn tells_all_apart(&mut self, variables: &[usize], index: &Poly, accesses: &[usize]) -> bool {
        let variable = |v: &usize| self.terms.atom(Key::Value(self.variables[*v]), true);
        let atoms: Vec<Atom> = variables.iter().map(variable).collect();
        let Some((first, others)) = accesses.split_first() else { return false };
        let holds = |guard: &&Formula| others.iter().all(|b| self.accesses[*b].guards.contains(guard));
        let guards = self.accesses[*first].guards.iter().filter(holds);
        let known: Vec<&Formula> = self.domain.iter().chain(guards).collect();
        atoms.iter().all(|atom| index.atoms().any(|a| a == *atom))
            && tells_digits_apart(self.terms, index, &known)
    }

    /// Is the index `c · var + invariant` with `c ≠ 0`, or `(var + invariant) % n` for a variable of `0..n`?
    fn tells_apart(&mut self, variable: usize, index: &Poly) -> bool {
        let var = self.terms.atom(Key::Value(self.variables[variable]), true);
        let linear = |p: &Poly| {
            let others = p.atoms().all(|x| x == var || !self.terms.varies(x));
            others && p.atoms().filter(|x| *x == var).count() == 1
        };
        if index.coefficient(var) != 0 {
            return linear(index);
        }
        let Some(Key::Remainder(dividend, divisor)) = index.as_atom().map(|atom| self.terms.key(atom)) else {
            return false;
        };
        let [from, to] = &self.ranges[variable];
        dividend.coefficient(var).abs() == 1
            && linear(dividend)
            && *from == Poly::constant(0)
            && to == divisor
    }

    /// Is it proved that the accesses never meet?
    pub fn never(&mut self, a: usize, b: usize, (scope, effort): (Scope, Effort)) -> bool {
        if self.apart_at_sight(a, b, scope) {
            return true;
        }
        if effort == Effort::Little && !(self.is_plain(a) && self.is_plain(b)) {
            return false;
        }
        self.ways(a, b, scope).is_some_and(|ways| ways.is_empty())
    }

    /// Of a loop that was proved safe before it was written in another way: is it certain that no other iteration touches the
    /// element of this update? Then it is carried out at once, and the iteration may read what it leaves. Where it is the same element for
    /// all iterations, of which there is one, this counts only if the iteration touches it in another way afterwards.
    pub fn is_owned(&mut self, update: usize, effort: Effort) -> bool {
        let all = 0..self.accesses.len();
        let (alike, others): (Vec<usize>, Vec<usize>) =
            all.partition(|b| self.accesses[*b].kind == self.accesses[update].kind);
        // An element that an iteration stores to is touched by no other one.
        let stores = |b: &usize| {
            let (update, store) = (&self.accesses[update], &self.accesses[*b]);
            store.kind == Kind::Write
                && store.index == update.index
                && store.guards.iter().all(|guard| update.guards.contains(guard))
        };
        let follows = |pairs: &Self, b: usize| pairs.accesses[b].may_follow(&pairs.accesses[update]);
        others.iter().any(stores)
            || (others.iter().any(|b| follows(self, *b) && !self.never(update, *b, (Scope::Any, effort)))
                && alike.iter().all(|b| self.never(update, *b, (Scope::Different, effort))))
    }

    /// Is the index made of loop variables and invariants alone?
    fn is_plain(&self, a: usize) -> bool {
        let plain = |atom: Atom| {
            let variable = |v: ValueId| *self.terms.program.op(v) == Op::LoopVar;
            !self.terms.varies(atom) || matches!(self.terms.key(atom), Key::Value(v) if variable(*v))
        };
        self.accesses[a].index.iter().all(|p| p.atoms().all(plain))
    }

    fn ways(&mut self, a: usize, b: usize, scope: Scope) -> Option<Vec<Residual>> {
        if let Some(ways) = self.ways.get(&(a, b, scope)) {
            return ways.clone();
        }
        let ways = self.find_ways(a, b, scope);
        self.ways.insert((a, b, scope), ways.clone());
        ways
    }

    /// Do the indices differ by a constant, or tell iterations apart in the same way?
    fn apart_at_sight(&mut self, a: usize, b: usize, scope: Scope) -> bool {
        let (first, second) = (&self.accesses[a], &self.accesses[b]);
        let apart = first.index.iter().zip(&second.index).any(|(a, b)| {
            let constant = a.add_scaled(b, -1).and_then(|d| d.as_constant());
            constant.is_some_and(|d| d != 0) && !self.terms.poly_varies(a)
        });
        if apart || scope == Scope::Any {
            return apart;
        }
        let claims = (first.claimed(), second.claimed());
        matches!(claims, (Some(a), Some(b)) if a == b) || self.one_owner(&[a, b])
    }

    fn find_ways(&mut self, a: usize, b: usize, scope: Scope) -> Option<Vec<Residual>> {
        if self.apart_at_sight(a, b, scope) {
            return Some(Vec::new());
        }
        if self.budget == 0 {
            return None;
        }
        // Conditions that were asked for have many alternatives, and a search among them has limits: what was proved before they
        // were asked for is proved again without them.
        let context = self.context;
        let ways = self.ways_given(&[], (a, b, scope));
        match ways {
            Some(none) if none.is_empty() => Some(none),
            ways if context.asked.is_empty() => ways,
            _ => self.ways_given(&context.asked, (a, b, scope)),
        }
    }

    fn ways_given(&mut self, asked: &[Formula], meeting: (usize, usize, Scope)) -> Option<Vec<Residual>> {
        let system = self.system(asked, meeting);
        let terms = &*self.terms;
        let mut refuter = Refuter { varies: &|atom| terms.varies(atom), budget: BUDGET };
        let ways = refuter.ways(&system);
        self.budget = self.budget.saturating_sub(BUDGET - refuter.budget);
        ways
    }

    /// Two accesses meet.
    fn system(&mut self, asked: &[Formula], (a, b, scope): (usize, usize, Scope)) -> System {
        let mut system = System::default();
        for fact in self.context.facts.iter().chain(asked) {
            system.add(fact, Origin::Context);
        }
        let mut indices = Vec::new();
        let mut variables = Vec::new();
        for (side, access) in [(0, self.accesses[a].clone()), (1, self.accesses[b].clone())] {
            for formula in self.domain.iter().chain(access.guards.iter()) {
                let here = formula.map(&mut |p| self.terms.copy(p, side));
                system.add(&here, Origin::Meeting);
            }
            indices.push(access.index.iter().map(|p| self.terms.copy(p, side)).collect::<Vec<_>>());
            let here: Vec<Poly> = self.variables.clone().iter().map(|v| self.variable(*v, side)).collect();
            variables.push(here);
        }
        for (x, y) in indices[0].iter().zip(&indices[1]) {
            system.add(&Formula::equal(x, y), Origin::Meeting);
        }
        self.terms.define_atoms(&mut system);
        if scope == Scope::Different {
            let mut ways = Vec::new();
            for d in 0..variables[0].len() {
                let equal = (0..d).map(|e| Formula::equal(&variables[0][e], &variables[1][e]));
                let equal: Vec<Formula> = equal.collect();
                let (x, y) = (&variables[0][d], &variables[1][d]);
                let mut below = equal.clone();
                below.push(Formula::above(y, x));
                ways.push(Formula::All(below));
                // An access and itself: one order is like the other.
                if a != b {
                    let mut above = equal;
                    above.push(Formula::above(x, y));
                    ways.push(Formula::All(above));
                }
            }
            match ways.len() {
                1 => system.add(&ways[0], Origin::Meeting),
                _ => system.any.insert(0, ways),
            }
        }
        system
    }

    fn variable(&mut self, v: ValueId, side: u8) -> Poly {
        let atom = Poly::atom(self.terms.atom(Key::Value(v), true));
        self.terms.copy(&atom, side)
    }

    /// What becomes of a pair that was not proved apart.
    pub fn verdict(&mut self, a: usize, b: usize, scope: Scope) -> Verdict {
        let ways = self.ways(a, b, scope);
        if ways.as_ref().is_some_and(|ways| ways.is_empty()) {
            return Verdict::Never;
        }
        if scope == Scope::Different
            && let Some(safe) = ways.and_then(|ways| self.condition(&ways))
        {
            return Verdict::Unless(safe);
        }
        let accesses = [self.accesses[a].clone(), self.accesses[b].clone()];
        let facts: Vec<Formula> = self.context.facts.iter().chain(&self.context.asked).cloned().collect();
        let question = Question {
            facts: &facts,
            domain: self.domain,
            variables: &self.variables,
            accesses: [&accesses[0], &accesses[1]],
            different: scope == Scope::Different,
        };
        Verdict::Conflict(find(self.terms, &question))
    }

    /// The condition under which none of these ways is open; `None` where it never holds, or only for short loops.
    fn condition(&mut self, ways: &[Residual]) -> Option<Formula> {
        let ways: Vec<Residual> = ways.iter().map(simplest).collect();
        if ways.iter().any(|way| way.is_empty()) {
            return None;
        }
        let closed = |way: &Residual| Formula::Any(way.iter().map(Formula::not).collect());
        let mut parts: Vec<Formula> = Vec::new();
        for part in ways.iter().map(closed) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        let safe = Formula::All(parts);
        let mut system = System::default();
        for fact in self.context.facts.iter().chain(&self.context.asked) {
            system.add(fact, Origin::Context);
        }
        system.add(&safe, Origin::Meeting);
        let extents = self.ranges.iter().filter_map(|[from, to]| to.add_scaled(from, -1));
        for extent in extents.filter(|e| e.as_constant().is_none()) {
            system.add(&Formula::at_least(&extent, &Poly::constant(LONG)), Origin::Meeting);
        }
        self.terms.define_atoms(&mut system);
        let terms = &*self.terms;
        let mut refuter = Refuter { varies: &|atom| terms.varies(atom), budget: BUDGET };
        (!refuter.refutes(&system)).then_some(safe)
    }
}
