//! Removes what nothing uses: values, locals, branches and loops without effect.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Block, LocalId, LoopKind, Op, Program, Stmt, ValueId, walk};

/// What is used so far, going backwards.
#[derive(Default)]
struct Used {
    values: BTreeSet<ValueId>,
    locals: BTreeSet<LocalId>,
}

/// The block without what has no effect on arrays. Loops are kept where their bodies have effects.
pub(crate) fn prune(program: &Program, block: Block) -> Block {
    // A local is used where a value that is used reads it, maybe in an earlier iteration of a loop: look until nothing new
    // is found. What only feeds itself is never found.
    let mut used = Used::default();
    loop {
        let before = (used.values.len(), used.locals.len());
        let kept = backwards(program, block.clone(), &mut used);
        if before == (used.values.len(), used.locals.len()) {
            return kept;
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

/// The block without writes of those of the arrays that it does not read.
pub(crate) fn without_unread(program: &Program, mut block: Block, arrays: &BTreeSet<ArrayId>) -> Block {
    loop {
        let mut unread = arrays.clone();
        walk(&block, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = program.op(*v)
            {
                unread.remove(array);
            }
        });
        if !forget_writes(&mut block, &unread) {
            return block;
        }
        block = prune(program, block);
    }
}

/// Takes writes of these arrays out of a block; says whether there were any.
fn forget_writes(block: &mut Block, arrays: &BTreeSet<ArrayId>) -> bool {
    let before = block.len();
    block.retain(|stmt| !matches!(stmt, Stmt::Store(s) | Stmt::Update(_, s) if arrays.contains(&s.array)));
    let mut found = block.len() < before;
    for stmt in block {
        stmt.blocks_mut().for_each(|inner| found |= forget_writes(inner, arrays));
    }
    found
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
                l.sums.retain(|local| used.locals.contains(local));
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
                let op = program.op(*v);
                used.values.extend(op.operands());
                used.locals.extend(if let Op::Get(local) = op { Some(*local) } else { None });
            }
            kept.push(stmt);
        }
    }
    kept.reverse();
    kept
}
