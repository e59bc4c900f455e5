//! Whether two iterations of a parallel loop can touch one element, one of them writing (law 7).
//!
//! - Input: a verified tree of statements.
//! - Output: for each parallel loop how it shares what it writes ([`ParFacts`]), and conditions known at loop entry under
//!   which it is safe; or a flaw with two iterations and the element at which they meet.
//! - Invariant: an accepted loop is safe on every run that does not fault. Index arithmetic that leaves 64 bits is a
//!   fault, so sums and products of indices are those of integers.
//!
//! Each pair of accesses of one array, one of them no read, is a system of conditions: both iterations are in the domain,
//! both accesses are reached, their indices are equal, the iterations differ. [`refute`] proves that it cannot hold. Where
//! it cannot prove that, what is left are conditions on scalars and shapes: their opposite is checked when the loop begins
//! ([`require`]).

mod changes;
mod context;
mod formula;
mod invariant;
mod message;
mod mixed_radix;
mod poly;
mod refute;
mod remember;
mod require;
mod system;
mod terms;
mod verdict;
mod witness;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use context::{Access, Context, Kind};
use formula::Formula;
use invariant::Inside;
use terms::Terms;
use verdict::{Effort, Pairs, Scope, Verdict};

use crate::analysis::affine::Affines;
use crate::syntax::*;

pub(crate) use require::{unchecked, with_requirements};

/// So many terms are a run of a sum of floats at an element that iterations may share (law 8).
pub const RUN: usize = 1024;

/// How the iterations of one parallel loop share elements that they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharing {
    /// No other iteration touches what one of them writes.
    Own,
    /// All iterations combine into one element that does not depend on the iteration: an ordered tree (law 8).
    Reduce,
    /// Iterations combine into elements that they may share: in iteration order, sums of floats run by run (law 8).
    Scatter,
}

/// What is known of one parallel loop.
#[derive(Clone, Debug, Default)]
pub struct ParFacts {
    /// How each written array is shared; where its updates differ, the last one of [`Sharing`].
    pub sharing: BTreeMap<ArrayId, Sharing>,
    /// The updates that are [`Sharing::Own`] although others of their array are not. They are known by the elements that they
    /// touch and not by [`WriteId`]: it is a fact about elements, all updates at one index share it, and loops are also
    /// looked at while they are being made, when their writes have no numbers yet.
    own: BTreeSet<(ArrayId, Indices)>,
}

impl ParFacts {
    /// How the iterations share the elements of an update.
    pub fn of(&self, store: &Store) -> Sharing {
        match self.sharing.get(&store.array) {
            Some(sharing) if !self.own.contains(&(store.array, store.index)) => *sharing,
            _ => Sharing::Own,
        }
    }

    /// Are the terms of this update, of elements of this type, added run by run where the loop keeps an order (law 8)?
    pub fn adds_by_runs(&self, how: Combine, ty: Type, store: &Store) -> bool {
        how == Combine::Add && ty.is_float() && self.of(store) == Sharing::Scatter
    }
}

/// What happens to a pair of accesses that is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It is refused, or a condition is asked for.
    Nothing,
    /// The loop was proved safe before it was written in another way: what is not decided is safe.
    Proved,
}

/// A condition under which a parallel loop is safe.
pub(crate) struct Unless {
    pub par: ParId,
    pub safe: Formula,
    pub accesses: [(Access, Kind); 2],
}

/// What is found out about the parallel loops of a program.
#[derive(Default)]
pub(crate) struct Findings {
    pub pars: BTreeMap<ParId, ParFacts>,
    pub unless: Vec<Unless>,
    pub flaws: Vec<Flaw>,
}

/// Looks at all parallel loops of a program, and keeps what is known where they stand.
pub(crate) struct Analysis<'p> {
    terms: Terms<'p>,
    contexts: BTreeMap<ParId, Context>,
}

impl<'p> Analysis<'p> {
    /// `body` is the program's own, or one from which loops of it were made without changing what values are.
    pub fn new(program: &'p Program, affines: &'p Affines, body: &Block) -> Analysis<'p> {
        let mut terms = Terms::new(program, affines);
        let contexts = context::contexts(&mut terms, body);
        Analysis { terms, contexts }
    }

    /// Looks at one parallel loop.
    pub fn par(&mut self, par: &Par, trust: Trust, findings: &mut Findings) {
        let trust = match par.safety {
            Safety::Proved => Trust::Proved,
            Safety::Unknown => trust,
        };
        let context = self.contexts.get(&par.id).cloned().unwrap_or_default();
        let (domain, accesses) = context::accesses(&mut self.terms, &context, par);
        let mut arrays: BTreeMap<ArrayId, Vec<Access>> = BTreeMap::new();
        for access in accesses {
            arrays.entry(access.array).or_default().push(access);
        }
        let inside = Inside::of(par);
        let mut facts = ParFacts::default();
        let before = findings.flaws.len();
        for (array, accesses) in arrays {
            let pairs = Pairs::new(&mut self.terms, &context, &domain, (par, &inside), accesses);
            share(pairs, par, array, trust, &mut facts, findings);
        }
        if findings.flaws.len() == before {
            findings.pars.insert(par.id, facts);
        }
    }
}

/// Looks at one parallel loop by itself: nothing is known of what stands around it, and no condition can be asked for.
pub(crate) fn analyse_alone(program: &Program, affines: &Affines, par: &Par) -> Result<ParFacts, Flaw> {
    let mut analysis = Analysis { terms: Terms::new(program, affines), contexts: BTreeMap::new() };
    let mut findings = Findings::default();
    analysis.par(par, Trust::Nothing, &mut findings);
    if let Some(unless) = findings.unless.pop() {
        let message = "whether its iterations meet is not known before it runs".to_string();
        return Err(Flaw { law: "7", message, site: unless.accesses[0].0.site.clone() });
    }
    match findings.pars.remove(&par.id) {
        Some(facts) => Ok(facts),
        None => Err(findings.flaws.pop().unwrap_or(Flaw { law: "7", message: String::new(), site: None })),
    }
}

/// Looks at all parallel loops of a program.
pub(crate) fn analyse(program: &Program, affines: &Affines) -> Findings {
    let mut analysis = Analysis::new(program, affines, &program.body);
    let mut findings = Findings::default();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            analysis.par(par, Trust::Nothing, &mut findings);
        }
    });
    findings
}

/// The loads and writes of a parallel loop that are certain never to touch one element, not even in one iteration: the array,
/// the index of the load and that of the write.
pub fn apart(program: &Program, affines: &Affines, par: &Par) -> BTreeSet<(ArrayId, Indices, Indices)> {
    let mut terms = Terms::new(program, affines);
    let context = Context::default();
    let (domain, accesses) = context::accesses(&mut terms, &context, par);
    let mut arrays: BTreeMap<ArrayId, Vec<Access>> = BTreeMap::new();
    for access in accesses {
        arrays.entry(access.array).or_default().push(access);
    }
    let inside = Inside::of(par);
    let mut apart = BTreeSet::new();
    for (array, accesses) in arrays {
        let mut pairs = Pairs::new(&mut terms, &context, &domain, (par, &inside), accesses);
        for load in 0..pairs.accesses.len() {
            for write in 0..pairs.accesses.len() {
                let kinds = (pairs.accesses[load].kind, pairs.accesses[write].kind);
                let counts = kinds.0 == Kind::Read && kinds.1 != Kind::Read;
                if counts && pairs.never(load, write, (Scope::Any, Effort::Full)) {
                    let writes: Vec<Indices> = pairs.merged(write).collect();
                    let all = pairs.merged(load).flat_map(|l| writes.iter().map(move |w| (array, l, *w)));
                    apart.extend(all.collect::<Vec<_>>());
                }
            }
        }
    }
    apart
}

/// Is it certain that no two iterations of a parallel loop load one element of the array? Where what flows back to it is added,
/// each iteration then adds to elements of its own.
pub fn loads_own(program: &Program, affines: &Affines, par: &Par, array: ArrayId) -> bool {
    let mut adding = Par { body: adding(program, &par.body, array), ..par.clone() };
    adding.safety = Safety::Unknown;
    let facts = analyse_alone(program, affines, &adding);
    facts.is_ok_and(|facts| facts.sharing.get(&array) == Some(&Sharing::Own))
}

/// A body that adds to what it loads of the array, and writes nothing else. The depth of recursion is that of nesting in the
/// source.
fn adding(program: &Program, body: &Block, array: ArrayId) -> Block {
    let statement = |stmt: &Stmt| match stmt {
        Stmt::Let(v) => match *program.op(*v) {
            Op::Load(loaded, index) if loaded == array => {
                let (site, id) = (None, WriteId::UNNUMBERED);
                Some(Stmt::Update(Combine::Add, Store { array, index, value: *v, site, id }))
            }
            _ => Some(stmt.clone()),
        },
        Stmt::Store(_) | Stmt::Update(..) | Stmt::Claim(_) => None,
        _ => {
            let mut stmt = stmt.clone();
            stmt.blocks_mut().for_each(|block| *block = adding(program, block, array));
            Some(stmt)
        }
    };
    body.iter().filter_map(statement).collect()
}

/// How the iterations share one array.
fn share(
    mut pairs: Pairs<'_, '_>,
    par: &Par,
    array: ArrayId,
    trust: Trust,
    facts: &mut ParFacts,
    findings: &mut Findings,
) {
    facts.sharing.insert(array, Sharing::Own);
    if pairs.all_own() {
        return;
    }
    let count = pairs.accesses.len();
    let combines = |pairs: &Pairs<'_, '_>, a: usize, b: usize| {
        matches!(pairs.accesses[a].kind, Kind::Combine(_)) && pairs.accesses[a].kind == pairs.accesses[b].kind
    };
    // Updates that other iterations' updates may meet.
    let mut shared: BTreeSet<usize> = BTreeSet::new();
    // Where all of them are updates of one kind, whether elements are shared is a matter of speed alone: proofs that take
    // long are not worth it.
    let effort = match (0..count).all(|a| combines(&pairs, a, 0)) {
        true => Effort::Little,
        false => Effort::Full,
    };
    let mut meetings: Vec<(usize, usize, Scope)> = Vec::new();
    for a in 0..count {
        for b in a..count {
            let read = pairs.accesses[a].kind == Kind::Read && pairs.accesses[b].kind == Kind::Read;
            if read || (trust == Trust::Proved && !combines(&pairs, a, b)) {
                continue;
            }
            // An element that is the same for all iterations is summed by law 8's tree even where there is one iteration.
            let fixed = a == b && combines(&pairs, a, b) && pairs.is_fixed(a);
            if !fixed && pairs.never(a, b, (Scope::Different, effort)) {
                continue;
            }
            if combines(&pairs, a, b) {
                shared.extend([a, b]);
            } else {
                meetings.push((a, b, Scope::Different));
            }
        }
    }
    let mut owned: BTreeSet<usize> = BTreeSet::new();
    if trust == Trust::Proved {
        owned = shared.iter().copied().filter(|a| pairs.is_owned(*a, effort)).collect();
        shared.retain(|a| !owned.contains(a));
    }
    // What is combined when the loop ends may not be touched in any other way afterwards, not even by the same iteration.
    let mut work: Vec<usize> = shared.iter().copied().collect();
    while let Some(a) = work.pop() {
        for b in (0..count).filter(|b| *b != a) {
            let alike = combines(&pairs, a, b);
            let after = alike || pairs.accesses[b].may_follow(&pairs.accesses[a]);
            // Of loops that are trusted, only what is wrong on the face of it is refused.
            let trusted =
                trust == Trust::Proved && !alike && pairs.accesses[a].index != pairs.accesses[b].index;
            if shared.contains(&b)
                || owned.contains(&b)
                || !after
                || trusted
                || pairs.never(a, b, (Scope::Any, effort))
            {
                continue;
            }
            if alike {
                shared.insert(b);
                work.push(b);
            } else if !meetings.contains(&(a.min(b), a.max(b), Scope::Any)) {
                meetings.push((a.min(b), a.max(b), Scope::Any));
            }
        }
    }
    if !shared.is_empty() {
        // The tree is for arrays of which all that is combined into is fixed, as the loop is written: which of the other
        // updates are shared is a matter of proof, and their order is that of iterations either way.
        let fixed = |a: usize| !matches!(pairs.accesses[a].kind, Kind::Combine(_)) || pairs.is_fixed(a);
        let fixed = (0..count).all(fixed);
        facts.sharing.insert(array, if fixed { Sharing::Reduce } else { Sharing::Scatter });
        let own = (0..count).filter(|a| !shared.contains(a));
        let own: Vec<usize> = own.filter(|a| matches!(pairs.accesses[*a].kind, Kind::Combine(_))).collect();
        for a in own {
            facts.own.extend(pairs.merged(a).map(|index| (array, index)));
        }
    }
    for (a, b, scope) in meetings {
        match pairs.verdict(a, b, scope) {
            Verdict::Never => {}
            Verdict::Unless(safe) => {
                if findings.unless.iter().any(|known| known.par == par.id && known.safe == safe) {
                    continue;
                }
                let access = |k: usize| (pairs.accesses[k].clone(), pairs.accesses[k].kind);
                findings.unless.push(Unless { par: par.id, safe, accesses: [access(a), access(b)] });
            }
            Verdict::Conflict(witness) => {
                findings.flaws.push(pairs.flaw(a, b, witness));
                return;
            }
        }
    }
}
