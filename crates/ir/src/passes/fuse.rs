//! Fusion: two parallel loops over the same domain become one where no iteration could tell.

use std::collections::{BTreeMap, BTreeSet};

use super::replace_inside;
use crate::analysis::affine::Affines;
use crate::analysis::dependence::{Sharing, analyse_alone};
use crate::syntax::*;

/// Fuses neighbouring parallel loops.
///
/// Legal where the domains are equal and the fused loop has no race: then what an iteration reads was written by
/// itself or before both loops. Sums keep their order, since each update statement sums on its own; ordered
/// sums at shared elements do not fuse. Wise where both loops work on the same types and go through memory the same way,
/// so that fusing does not keep one of them from running in vectors.
pub fn fuse_parallel_loops(program: &Program) -> Program {
    // The body as it was stays in place meanwhile: its swaps say which shapes are equal.
    let mut after = program.clone();
    let mut body = after.body.clone();
    let affines = Affines::of(program);
    fuse_block(&mut after, &affines, &mut body);
    after.body = body;
    after
}

fn fuse_block(program: &mut Program, affines: &Affines, block: &mut Block) {
    let mut fused: Block = Vec::with_capacity(block.len());
    for mut stmt in std::mem::take(block) {
        if !matches!(stmt, Stmt::Par(_)) {
            stmt.blocks_mut().for_each(|inner| fuse_block(program, affines, inner));
        }
        let Stmt::Par(second) = stmt else {
            fused.push(stmt);
            continue;
        };
        // Pure values between the loops can as well be computed before both.
        let between = fused.iter().rev().take_while(|s| is_pure_let(program, s)).count();
        let at = fused.len() - between;
        let together = match at.checked_sub(1).map(|first| &fused[first]) {
            Some(Stmt::Par(first)) => fuse(program, affines, first, &second),
            _ => None,
        };
        match together {
            Some((values, par)) => {
                *program = values;
                let moved: Vec<Stmt> = fused.drain(at..).collect();
                fused.pop();
                fused.extend(moved);
                fused.push(Stmt::Par(par));
            }
            None => fused.push(Stmt::Par(second)),
        }
    }
    *block = fused;
}

fn is_pure_let(program: &Program, stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Let(v) if program.op(*v).is_pure() && !program.may_fail(*v))
}

fn fuse(program: &Program, affines: &Affines, first: &Par, second: &Par) -> Option<(Program, Par)> {
    let same_domain = first.ranges.len() == second.ranges.len()
        && first.ranges.iter().zip(&second.ranges).all(|(a, b)| {
            affines.form(a.from) == affines.form(b.from) && affines.form(a.to) == affines.form(b.to)
        });
    // What is required of a loop is not required of another one.
    if !first.requires.is_empty() || !second.requires.is_empty() {
        return None;
    }
    if !same_domain || first.ordering != second.ordering || types(program, first) != types(program, second) {
        return None;
    }
    // A variable is declared once in a loop.
    if !declared(first).is_disjoint(&declared(second)) {
        return None;
    }
    let [a, b] = [first, second].map(|par| inner_loads(program, affines, par));
    if a.is_some() && b.is_some() && a != b {
        return None;
    }
    let variables: BTreeMap<ValueId, ValueId> =
        second.ranges.iter().zip(&first.ranges).map(|(b, a)| (b.var, a.var)).collect();
    if variables.iter().any(|(second, first)| first > second) {
        return None;
    }
    let mut after = program.clone();
    let mut par = first.clone();
    let mut rest = second.body.clone();
    replace_inside(&mut after, &mut rest, &|v| variables.get(&v).copied().unwrap_or(v));
    par.body.append(&mut rest);
    // What is known of the two says nothing of the one.
    par.safety = Safety::Unknown;
    let facts = analyse_alone(&after, &Affines::of(&after), &par).ok()?;
    let scatters = facts.sharing.values().any(|sharing| *sharing == Sharing::Scatter);
    (!scatters).then_some((after, par))
}

/// The local variables of a loop.
fn declared(par: &Par) -> BTreeSet<LocalId> {
    let mut locals = BTreeSet::new();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Declare(local, _) = stmt {
            locals.insert(*local);
        }
    });
    locals
}

/// Where the elements lie that neighbouring iterations load in loops of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InnerLoads {
    /// Beside one another: iterations run in vectors.
    Along,
    /// In other rows, some of them at least: the loops inside run in vectors.
    Across,
}

/// How the loops inside iterations load elements that differ between iterations; `None` where they load none.
fn inner_loads(program: &Program, affines: &Affines, par: &Par) -> Option<InnerLoads> {
    let variable = par.ranges.last()?.var;
    let mut found = None;
    let moves = |v: &ValueId| affines.form(*v).coefficient(variable) != 0;
    walk(&par.body, &mut |stmt| {
        let Stmt::Loop(inner) = stmt else { return };
        walk(&inner.body, &mut |stmt| {
            let Stmt::Let(v) = stmt else { return };
            let Op::Load(_, index) = program.op(*v) else { return };
            found = found.max(match index.as_slice().split_last() {
                Some((_, rows)) if rows.iter().any(moves) => Some(InnerLoads::Across),
                Some((last, _)) if moves(last) => Some(InnerLoads::Along),
                _ => None,
            });
        });
    });
    found
}

/// The types of all elements and locals that a loop works on.
fn types(program: &Program, par: &Par) -> BTreeSet<Type> {
    let mut types = BTreeSet::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            if let Op::Load(array, _) = program.op(*v) {
                types.insert(program.array(*array).ty);
            }
        }
        Stmt::Store(s) | Stmt::Update(_, s) => drop(types.insert(program.array(s.array).ty)),
        Stmt::Declare(local, _) => drop(types.insert(program.locals[local.index()].ty)),
        _ => {}
    });
    types
}
