//! Invariant values: what is the same in all iterations is computed once, before the loop.

use std::collections::BTreeSet;

use crate::syntax::*;

/// Moves pure values that no iteration changes, and that cannot fail, out of parallel bodies.
pub fn hoist_invariant_values(program: &Program) -> Program {
    let mut after = program.clone();
    let mut body = std::mem::take(&mut after.body);
    hoist(&after, &mut body);
    after.body = body;
    after
}

fn hoist(program: &Program, block: &mut Block) {
    for mut stmt in std::mem::take(block) {
        match &mut stmt {
            Stmt::Par(par) => {
                let mut inside = BTreeSet::new();
                inside.extend(par.ranges.iter().map(|r| r.var));
                walk(&par.body, &mut |stmt| match stmt {
                    Stmt::Let(v) => drop(inside.insert(*v)),
                    Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
                    _ => {}
                });
                take_invariant(program, &mut par.body, &mut inside, block);
            }
            other => other.blocks_mut().for_each(|inner| hoist(program, inner)),
        }
        block.push(stmt);
    }
}

fn take_invariant(program: &Program, from: &mut Block, inside: &mut BTreeSet<ValueId>, to: &mut Block) {
    from.retain_mut(|stmt| {
        if let Stmt::Let(v) = stmt {
            let op = program.op(*v);
            let pure = op.is_pure() && *op != Op::LoopVar && !program.may_fail(*v);
            if pure && op.operands().all(|o| !inside.contains(&o)) {
                inside.remove(v);
                to.push(Stmt::Let(*v));
                return false;
            }
        }
        stmt.blocks_mut().for_each(|inner| take_invariant(program, inner, inside, to));
        true
    });
}
