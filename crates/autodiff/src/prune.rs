//! Removes what nothing uses: values, locals, branches and loops without effect.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, LocalId, LoopKind, Op, Program, Stmt, ValueId, walk};

/// What is used so far, going backwards.
#[derive(Default)]
struct Used {
    values: BTreeSet<ValueId>,
    locals: BTreeSet<LocalId>,
}

/// The block without what has no effect on arrays. Loops are kept where their bodies have effects.
pub(crate) fn prune(program: &Program, block: Block) -> Block {
    // A local read anywhere may be live around a loop; iterate until nothing more goes.
    let mut block = block;
    loop {
        let mut used = Used::default();
        collect_gets(program, &block, &mut used);
        let before = count(&block);
        block = backwards(program, block, &mut used);
        if count(&block) == before {
            return block;
        }
    }
}

/// The program-level block without values that nothing in it uses. What the reverse half computes again cannot fail: it
/// did not fail in the forward half.
pub(crate) fn drop_unused_values(program: &Program, mut block: Block) -> Block {
    loop {
        let mut used = BTreeSet::new();
        walk(&block, &mut |stmt| {
            used.extend(stmt.uses());
            if let Stmt::Let(v) = stmt {
                used.extend(program.op(*v).operands());
            }
        });
        let before = block.len();
        block.retain(|stmt| !matches!(stmt, Stmt::Let(v) if !used.contains(v)));
        if block.len() == before {
            return block;
        }
    }
}

fn count(block: &Block) -> usize {
    let mut n = 0;
    walk(block, &mut |_| n += 1);
    n
}

fn collect_gets(program: &Program, block: &Block, used: &mut Used) {
    walk(block, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Get(local) = program.op(*v)
        {
            used.locals.insert(*local);
        }
    });
}

fn backwards(program: &Program, block: Block, used: &mut Used) -> Block {
    let mut kept = Block::new();
    for mut stmt in block.into_iter().rev() {
        let keep = match &mut stmt {
            Stmt::Let(v) => used.values.contains(v),
            Stmt::Declare(local, _) | Stmt::Set(local, _) => used.locals.contains(local),
            Stmt::If(branch) => {
                branch.then = backwards(program, std::mem::take(&mut branch.then), used);
                branch.otherwise = backwards(program, std::mem::take(&mut branch.otherwise), used);
                !(branch.then.is_empty() && branch.otherwise.is_empty())
            }
            Stmt::Loop(l) => {
                used.values.extend(l.until);
                l.body = backwards(program, std::mem::take(&mut l.body), used);
                if let LoopKind::While { head, condition } = &mut l.kind {
                    used.values.insert(*condition);
                    *head = backwards(program, std::mem::take(head), used);
                }
                !l.body.is_empty()
            }
            Stmt::Par(par) => {
                par.body = backwards(program, std::mem::take(&mut par.body), used);
                !par.body.is_empty()
            }
            _ => true,
        };
        if keep {
            used.values.extend(stmt.uses());
            if let Stmt::Let(v) = &stmt {
                used.values.extend(program.op(*v).operands());
            }
            kept.push(stmt);
        }
    }
    kept.reverse();
    kept
}
