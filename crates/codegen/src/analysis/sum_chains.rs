//! Which loops inside iterations add to locals one term after the other, where the terms do not depend on what has been added. Input: a
//! parallel loop; output: such loops, and the locals.
//!
//! The threads of a team compute as many terms side by side, and add them in the order of the source: the chain of additions is all
//! that waits.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Binary, Block, Facts, LocalId, Loop, LoopId, LoopKind, Op, Par, Program, Sharing, Stmt, ValueId, walk,
};

use crate::analysis::bounds_proof::Prover;
use crate::analysis::names::{reductions, values_inside};
use crate::kernel::machine::LONG_CHAIN;

/// A loop has so many chains at most: the threads of a block share memory for their terms.
const MOST_CHAINS: usize = 8;

/// The loops with chains of a parallel loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SumChains {
    pub locals: BTreeMap<LoopId, Vec<LocalId>>,
    /// Where they begin and end: known before the parallel loop.
    pub bounds: Vec<(ValueId, ValueId)>,
}

/// The loops with chains, where teams of threads may take iterations: these need no checks, store into elements of their own, and
/// have no sums of another order.
pub(crate) fn sum_chains(program: &Program, facts: &Facts, par: &Par) -> SumChains {
    let mut found = SumChains::default();
    let Some(of_par) = facts.pars.get(&par.id).filter(|_| reductions(facts, par).is_empty()) else {
        return found;
    };
    let inside = values_inside(par);
    let mut fine = true;
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Loop(l) => fine &= l.sums.is_empty(),
        Stmt::Update(_, s) => fine &= of_par.of(s) == Sharing::Own,
        Stmt::Claim(_) => fine = false,
        Stmt::If(branch) => fine &= program.print(branch).is_none(),
        _ => {}
    });
    if fine {
        outermost(program, &par.body, &inside, &mut found);
    }
    if !found.locals.is_empty() && (Prover { program, facts, inside: &inside }).proof(par).is_none() {
        return SumChains::default();
    }
    found
}

/// The loops with chains that are in no other such loop. The depth of recursion is that of nesting in the source.
fn outermost(program: &Program, block: &Block, inside: &BTreeSet<ValueId>, found: &mut SumChains) {
    for stmt in block {
        if let Stmt::Loop(l) = stmt
            && let LoopKind::For { from, to, .. } = l.kind
            && [from, to].iter().all(|v| program.literal(*v).is_some() || !inside.contains(v))
            && is_long(program, from, to)
            && let Some(locals) = chains(program, l)
        {
            found.locals.insert(l.id, locals);
            found.bounds.push((from, to));
            continue;
        }
        stmt.blocks().for_each(|block| outermost(program, block, inside, found));
    }
}

/// May a loop be long?
fn is_long(program: &Program, from: ValueId, to: ValueId) -> bool {
    let number = |v| program.literal(v).and_then(|literal| literal.to_i64());
    match (number(from), number(to)) {
        (Some(from), Some(to)) => to.saturating_sub(from) >= LONG_CHAIN as i64,
        _ => true,
    }
}

/// The locals to which a loop adds, where it does nothing else that an iteration leaves to the next one.
fn chains(program: &Program, l: &Loop) -> Option<Vec<LocalId>> {
    if l.until.is_some() || !l.sums.is_empty() {
        return None;
    }
    let mut body = Found::of(program);
    body.block(&l.body, false);
    let Found { sets, gets, uses, fine, .. } = body;
    let is_chain = |local: &LocalId, sets: &Vec<ValueId>| {
        let (&[sum], Some(&[old])) = (sets.as_slice(), gets.get(local).map(Vec::as_slice)) else {
            return false;
        };
        let adds = match *program.op(sum) {
            Op::Binary(Binary::Add, a, b) => (a == old) != (b == old),
            Op::Binary(Binary::Sub, a, b) => a == old && b != old,
            _ => false,
        };
        adds && program.ty(sum).is_float() && uses.get(&old) == Some(&1) && !uses.contains_key(&sum)
    };
    let types: BTreeSet<_> = sets.keys().map(|local| program.locals[local.index()].ty).collect();
    let fine = fine && types.len() == 1 && sets.len() <= MOST_CHAINS;
    (fine && sets.iter().all(|(local, sets)| is_chain(local, sets))).then(|| sets.into_keys().collect())
}

/// What the body of a loop does with locals.
struct Found<'a> {
    program: &'a Program,
    /// Those that it declares.
    own: BTreeSet<LocalId>,
    /// What is stored in others, and what of them is read.
    sets: BTreeMap<LocalId, Vec<ValueId>>,
    gets: BTreeMap<LocalId, Vec<ValueId>>,
    /// How often values are used, but for what is stored in others.
    uses: BTreeMap<ValueId, usize>,
    /// Does it leave anything else behind?
    fine: bool,
}

impl Found<'_> {
    fn of(program: &Program) -> Found<'_> {
        Found {
            program,
            own: BTreeSet::new(),
            sets: BTreeMap::new(),
            gets: BTreeMap::new(),
            uses: BTreeMap::new(),
            fine: true,
        }
    }

    fn used(&mut self, v: ValueId) {
        *self.uses.entry(v).or_default() += 1;
    }

    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, in_loop: bool) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    let op = self.program.op(*v);
                    op.operands().for_each(|operand| self.used(operand));
                    if let Op::Get(local) = op
                        && !self.own.contains(local)
                    {
                        self.gets.entry(*local).or_default().push(*v);
                    }
                }
                Stmt::Declare(local, v) => {
                    self.own.insert(*local);
                    self.used(*v);
                }
                Stmt::Set(local, v) if self.own.contains(local) => self.used(*v),
                Stmt::Set(local, v) => {
                    self.fine &= !in_loop;
                    self.sets.entry(*local).or_default().push(*v);
                }
                Stmt::If(_) | Stmt::Loop(_) => {
                    if let Stmt::Loop(l) = stmt {
                        // Others look now and then whether the launch is to end, which a team must do together.
                        self.fine &= matches!(l.kind, LoopKind::For { .. });
                    }
                    stmt.uses().into_iter().for_each(|v| self.used(v));
                    let in_loop = in_loop || matches!(stmt, Stmt::Loop(_));
                    stmt.blocks().for_each(|block| self.block(block, in_loop));
                }
                _ => self.fine = false,
            }
        }
    }
}
