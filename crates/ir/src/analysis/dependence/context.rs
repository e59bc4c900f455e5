//! What is known where a parallel loop stands, and what its iterations touch.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::changes::Changes;
use super::formula::Formula;
use super::poly::Poly;
use super::terms::Terms;
use crate::syntax::*;

/// What is known when a parallel loop begins.
#[derive(Clone, Default)]
pub struct Context {
    pub facts: Vec<Formula>,
    /// What conditions at the beginning of the loop say.
    pub asked: Vec<Formula>,
    /// What local variables hold.
    pub locals: HashMap<LocalId, Poly>,
    /// Which content arrays have; those that are not here have the one that all had at some time.
    arrays: HashMap<ArrayId, u32>,
    all: u32,
    /// What single elements hold.
    elements: HashMap<(ArrayId, Vec<Poly>), Poly>,
}

/// How an access touches an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Combine(Combine),
}

/// An access of an element in the body of a parallel loop.
#[derive(Clone)]
pub struct Access {
    pub array: ArrayId,
    pub kind: Kind,
    pub index: Vec<Poly>,
    pub values: Indices,
    /// What holds where it is made.
    pub guards: Rc<Vec<Formula>>,
    /// By array of claims: the elements that its block claims.
    pub claims: Rc<Vec<(ArrayId, Vec<Poly>)>>,
    /// What is stored, where it is a store.
    pub stored: Option<ValueId>,
    /// Its place among the accesses of the body, and that of the last one that is like it.
    pub order: (usize, usize),
    /// The sequential loops around it.
    pub loops: Vec<LoopId>,
    pub site: Option<Site>,
}

impl Access {
    /// May this access be made after the other one, in one iteration?
    pub fn may_follow(&self, other: &Access) -> bool {
        self.order.1 > other.order.0 || self.loops.iter().any(|l| other.loops.contains(l))
    }

    /// Does the access claim its element first, and with which array of claims?
    pub fn claimed(&self) -> Option<ArrayId> {
        self.claims.iter().find(|(_, index)| *index == self.index).map(|(taken, _)| *taken)
    }
}

/// The contexts of all parallel loops of a block at program level.
pub fn contexts(terms: &mut Terms<'_>, block: &Block) -> BTreeMap<ParId, Context> {
    let (now, changes) = (Context::default(), Changes::default());
    let mut walker = Walker { terms, now, found: BTreeMap::new(), inside: None, changes, met: Vec::new() };
    walker.block(block);
    walker.found
}

/// The accesses of a parallel loop, and the conditions on its variables.
pub fn accesses(terms: &mut Terms<'_>, context: &Context, par: &Par) -> (Vec<Formula>, Vec<Access>) {
    let mut values: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    let mut own: BTreeSet<LocalId> = BTreeSet::new();
    let mut written: BTreeSet<ArrayId> = BTreeSet::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(values.insert(*v)),
        Stmt::Declare(local, _) => drop(own.insert(*local)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(values.insert(*var)),
        Stmt::Store(s) | Stmt::Update(_, s) => drop(written.insert(s.array)),
        Stmt::Claim(claim) => drop(written.insert(claim.taken)),
        _ => {}
    });
    terms.enter(&values);
    let mut domain = Vec::new();
    for range in &par.ranges {
        let var = terms.loop_variable(range.var, true);
        let (from, to) = (terms.value(range.from), terms.value(range.to));
        domain.extend([Formula::at_least(&var, &from), Formula::above(&to, &var)]);
    }
    let inside = Inside { written, accesses: Vec::new(), claims: Rc::new(Vec::new()), loops: Vec::new() };
    let now = Context { facts: Vec::new(), ..context.clone() };
    let changes = Changes::default();
    let (found, met) = (BTreeMap::new(), Vec::new());
    let mut walker = Walker { terms, now, found, inside: Some(inside), changes, met };
    walker.block(&par.body);
    (domain, walker.inside.map(|inside| inside.accesses).unwrap_or_default())
}

struct Inside {
    written: BTreeSet<ArrayId>,
    accesses: Vec<Access>,
    claims: Rc<Vec<(ArrayId, Vec<Poly>)>>,
    /// The sequential loops around what is walked now.
    loops: Vec<LoopId>,
}

struct Walker<'t, 'p> {
    terms: &'t mut Terms<'p>,
    now: Context,
    found: BTreeMap<ParId, Context>,
    /// The parallel loop whose body is being walked.
    inside: Option<Inside>,
    changes: Changes,
    /// Local variables that were declared outside what is looked at, in the order in which they were met.
    met: Vec<LocalId>,
}

impl Walker<'_, '_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) {
        let outer = self.inside.as_ref().map(|inside| inside.claims.clone());
        if self.inside.is_some() {
            // Indices of claims are values of this block: they are defined when the claim is met.
            self.set_claims(Rc::new(Vec::new()));
        }
        let first = self.inside.as_ref().map_or(0, |inside| inside.accesses.len());
        let mut claims = Vec::new();
        for stmt in block {
            self.statement(stmt, &mut claims);
        }
        if let Some(inside) = &mut self.inside {
            let claims = Rc::new(claims);
            // Those of nested blocks have claims of their own.
            for access in
                inside.accesses[first..].iter_mut().filter(|a| Rc::ptr_eq(&a.claims, &inside.claims))
            {
                access.claims = claims.clone();
            }
        }
        if let Some(outer) = outer {
            self.set_claims(outer);
        }
    }

    fn set_claims(&mut self, claims: Rc<Vec<(ArrayId, Vec<Poly>)>>) {
        if let Some(inside) = &mut self.inside {
            inside.claims = claims;
        }
    }

    fn statement(&mut self, stmt: &Stmt, claims: &mut Vec<(ArrayId, Vec<Poly>)>) {
        match stmt {
            Stmt::Let(v) => self.value(*v),
            Stmt::Declare(local, v) | Stmt::Set(local, v) => {
                if self.terms.program.ty(*v).is_float() {
                    return;
                }
                let poly = self.terms.value(*v);
                self.now.locals.insert(*local, poly);
            }
            Stmt::Store(s) => {
                self.access(s.array, s.index, Kind::Write, Some(s.value), &s.site);
                if self.inside.is_none() {
                    self.changed(s.array);
                    let index: Vec<Poly> = s.index.as_slice().iter().map(|v| self.terms.value(*v)).collect();
                    if self.terms.program.ty(s.value).is_integer() {
                        let value = self.terms.value(s.value);
                        self.now.elements.insert((s.array, index), value);
                    }
                }
            }
            Stmt::Update(how, s) => {
                self.access(s.array, s.index, Kind::Combine(*how), None, &s.site);
                self.forget(stmt);
            }
            Stmt::Claim(claim) => {
                let index = claim.index.as_slice().iter().map(|v| self.terms.value(*v)).collect();
                claims.push((claim.taken, index));
            }
            Stmt::If(branch) => {
                let condition = self.terms.formula(branch.condition);
                let otherwise = condition.not();
                let changed = self.changes.of(stmt);
                let known = |local: &LocalId| (*local, self.now.locals.get(local).cloned());
                let before: Vec<(LocalId, Option<Poly>)> = changed.locals.iter().map(known).collect();
                for (arm, fact) in [(&branch.then, condition), (&branch.otherwise, otherwise)] {
                    let met = self.met.len();
                    self.under(vec![fact], arm);
                    self.go_back(&before, met);
                }
                self.forget(stmt);
            }
            Stmt::Loop(l) => {
                let known = self.now.facts.len();
                // Most loops set no variables, and nests are deep: they need not be gone through for their bounds.
                let bounds = match self.changes.of(stmt).locals.is_empty() {
                    true => Vec::new(),
                    false => self.lower_bounds(l),
                };
                self.forget(stmt);
                self.keep(&bounds);
                if let Some(inside) = &mut self.inside {
                    inside.loops.push(l.id);
                }
                let facts = match &l.kind {
                    LoopKind::For { var, from, to } => {
                        let inside = self.inside.is_some();
                        let var = self.terms.loop_variable(*var, inside);
                        let (from, to) = (self.terms.value(*from), self.terms.value(*to));
                        vec![Formula::at_least(&var, &from), Formula::above(&to, &var)]
                    }
                    LoopKind::While { head, condition } => {
                        self.block(head);
                        vec![self.terms.formula(*condition)]
                    }
                    LoopKind::Forever => Vec::new(),
                };
                self.under(facts, &l.body);
                if let Some(inside) = &mut self.inside {
                    inside.loops.pop();
                }
                self.now.facts.truncate(known);
                self.forget(stmt);
                self.keep(&bounds);
            }
            Stmt::Par(par) => {
                let mut context = self.now.clone();
                for requirement in &par.requires {
                    context.asked.push(self.terms.formula(requirement.condition));
                }
                self.found.insert(par.id, context);
                self.forget(stmt);
            }
            Stmt::Forward(_) | Stmt::Backward(_) => {
                // A sweep runs pieces of its loop in any order: nothing that was set before is known inside.
                for block in stmt.blocks() {
                    self.forget(stmt);
                    self.under(Vec::new(), block);
                }
                self.forget(stmt);
            }
            other => {
                for block in other.blocks() {
                    self.under(Vec::new(), block);
                }
                self.forget(other);
            }
        }
    }

    /// What an arm of a branch has set, and whom it has met first, is as it was before it.
    fn go_back(&mut self, before: &[(LocalId, Option<Poly>)], met: usize) {
        for local in self.met.drain(met..) {
            self.now.locals.remove(&local);
        }
        for (local, known) in before {
            match known {
                Some(poly) => drop(self.now.locals.insert(*local, poly.clone())),
                None => drop(self.now.locals.remove(local)),
            }
        }
    }

    fn under(&mut self, facts: Vec<Formula>, block: &Block) {
        let known = self.now.facts.len();
        self.now.facts.extend(facts);
        self.block(block);
        self.now.facts.truncate(known);
    }

    /// What a statement sets in its blocks is not known any more.
    fn forget(&mut self, stmt: &Stmt) {
        let varies = self.inside.is_some();
        let changed = self.changes.of(stmt);
        for local in &changed.locals {
            let fresh = self.terms.fresh(*local, varies);
            self.now.locals.insert(*local, fresh);
        }
        if self.inside.is_some() {
            return;
        }
        if changed.anything {
            self.now.all = self.terms.version();
            self.now.arrays.clear();
            self.now.elements.clear();
        }
        changed.arrays.iter().for_each(|array| self.changed(*array));
    }

    /// The contents of an array are others from here on.
    fn changed(&mut self, array: ArrayId) {
        let version = self.terms.version();
        self.now.arrays.insert(array, version);
        self.now.elements.retain(|(a, _), _| *a != array);
    }

    /// Numbers below which local variables never fall in a loop: they are there before it, and no assignment goes below.
    fn lower_bounds(&self, l: &Loop) -> Vec<(LocalId, i128)> {
        let program = self.terms.program;
        let mut sets: BTreeMap<LocalId, Vec<ValueId>> = BTreeMap::new();
        let mut inside: BTreeSet<ValueId> = BTreeSet::new();
        let mut body: Vec<&Block> = vec![&l.body];
        if let LoopKind::While { head, .. } = &l.kind {
            body.push(head);
        }
        for block in body {
            walk(block, &mut |stmt| match stmt {
                Stmt::Set(local, v) => sets.entry(*local).or_default().push(*v),
                Stmt::Let(v) => drop(inside.insert(*v)),
                _ => {}
            });
        }
        let first = |local: &LocalId| {
            let poly = self.now.locals.get(local)?;
            poly.as_constant().or_else(|| self.terms.is_extent(poly).then_some(0))
        };
        let bounds: BTreeMap<LocalId, i128> =
            sets.keys().filter_map(|local| Some((*local, first(local)?.min(1)))).collect();
        let holds = |(local, bound): &(LocalId, i128)| {
            sets[local]
                .iter()
                .all(|v| least(program, (&bounds, &inside), *v, 20).is_some_and(|least| least >= *bound))
        };
        // Bounds that lean on each other hold together or not at all.
        let all: Vec<(LocalId, i128)> = bounds.iter().map(|(local, bound)| (*local, *bound)).collect();
        let mut alone: Vec<(LocalId, i128)> = Vec::new();
        if all.iter().all(holds) {
            return all;
        }
        for (local, bound) in all {
            let own = BTreeMap::from([(local, bound)]);
            let holds =
                |v: &ValueId| least(program, (&own, &inside), *v, 20).is_some_and(|least| least >= bound);
            if bound >= 0 && sets[&local].iter().all(holds) {
                alone.push((local, bound));
            }
        }
        alone
    }

    fn keep(&mut self, bounds: &[(LocalId, i128)]) {
        for (local, bound) in bounds {
            if let Some(poly) = self.now.locals.get(local).cloned() {
                self.now.facts.push(Formula::at_least(&poly, &Poly::constant(*bound)));
            }
        }
    }

    fn value(&mut self, v: ValueId) {
        match *self.terms.program.op(v) {
            Op::Get(local) => match self.now.locals.get(&local).cloned() {
                Some(poly) => self.terms.set(v, poly),
                None if self.terms.program.ty(v).is_float() => {
                    self.terms.set_opaque(v, self.inside.is_some());
                }
                None => {
                    // It was declared outside what is looked at, and no iteration may set it.
                    let fresh = self.terms.fresh(local, false);
                    self.now.locals.insert(local, fresh.clone());
                    self.met.push(local);
                    self.terms.set(v, fresh);
                }
            },
            Op::Load(array, index) => {
                if self.inside.as_ref().is_some_and(|inside| inside.written.contains(&array)) {
                    self.terms.set_opaque(v, true);
                } else {
                    let index: Vec<Poly> = index.as_slice().iter().map(|v| self.terms.value(*v)).collect();
                    let version = self.now.arrays.get(&array).copied().unwrap_or(self.now.all);
                    let element = match self.now.elements.get(&(array, index.clone())) {
                        Some(stored) => stored.clone(),
                        None => self.terms.element(array, version, index),
                    };
                    self.terms.set(v, element);
                }
                self.access(array, index, Kind::Read, None, &self.terms.program.value(v).site.clone());
            }
            _ => self.terms.define(v),
        }
    }

    fn access(
        &mut self,
        array: ArrayId,
        values: Indices,
        kind: Kind,
        stored: Option<ValueId>,
        site: &Option<Site>,
    ) {
        let Some(inside) = &self.inside else { return };
        if !inside.written.contains(&array) {
            return;
        }
        let claims = inside.claims.clone();
        let (place, loops) = (inside.accesses.len(), inside.loops.clone());
        let order = (place, place);
        let index = values.as_slice().iter().map(|v| self.terms.value(*v)).collect();
        let guards = Rc::new(self.now.facts.clone());
        let access =
            Access { array, kind, index, values, guards, claims, stored, order, loops, site: site.clone() };
        if let Some(inside) = &mut self.inside {
            inside.accesses.push(access);
        }
    }
}

/// A number that a value does not fall below, where local variables do not fall below theirs while the values `inside` are
/// computed.
fn least(
    program: &Program,
    (locals, inside): (&BTreeMap<LocalId, i128>, &BTreeSet<ValueId>),
    v: ValueId,
    depth: usize,
) -> Option<i128> {
    let deeper = |v: ValueId| least(program, (locals, inside), v, depth.checked_sub(1)?);
    let below = |v: ValueId| deeper(v).filter(|least| *least >= 0);
    match *program.op(v) {
        _ if program.ty(v) != Type::Index => None,
        Op::Literal(l) => l.to_i64().map(i128::from),
        Op::Dim(..) => Some(0),
        Op::Get(local) if inside.contains(&v) => locals.get(&local).copied(),
        Op::Binary(Binary::Add, a, b) => below(a)?.checked_add(below(b)?),
        Op::Binary(Binary::Mul, a, b) => below(a)?.checked_mul(below(b)?),
        Op::Binary(Binary::Max, a, b) => Some(below(a)?.max(below(b)?)),
        Op::Binary(Binary::Div, a, b) => {
            let divisor = program.literal(b).and_then(Literal::to_i64).filter(|c| *c > 0)?;
            Some(below(a)? / i128::from(divisor))
        }
        _ => None,
    }
}
