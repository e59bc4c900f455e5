//! Dead code: what nothing uses and whose absence changes nothing.

use std::collections::BTreeSet;

use super::for_each_par;
use crate::syntax::*;

/// Removes from parallel bodies what is not used. What can fail stays: its error is part of the program.
pub fn drop_dead_code(program: &Program) -> Program {
    let mut after = program.clone();
    let mut body = std::mem::take(&mut after.body);
    for_each_par(&mut body, &mut |par| {
        loop {
            let mut used = Used::default();
            used.see(program, &par.body);
            let before = count(&par.body);
            drop_unused(program, &mut par.body, &used);
            if count(&par.body) == before {
                break;
            }
        }
    });
    after.body = body;
    after
}

#[derive(Default)]
struct Used {
    values: BTreeSet<ValueId>,
    locals: BTreeSet<LocalId>,
}

impl Used {
    fn see(&mut self, program: &Program, block: &Block) {
        walk(block, &mut |stmt| {
            self.values.extend(stmt.uses());
            if let Stmt::Let(v) = stmt {
                let op = program.op(*v);
                self.values.extend(op.operands());
                if let Op::Get(local) = op {
                    self.locals.insert(*local);
                }
            }
        });
    }
}

fn count(block: &Block) -> usize {
    let mut count = 0;
    walk(block, &mut |_| count += 1);
    count
}

fn drop_unused(program: &Program, block: &mut Block, used: &Used) {
    block.retain_mut(|stmt| {
        stmt.blocks_mut().for_each(|inner| drop_unused(program, inner, used));
        match stmt {
            Stmt::Let(v) => used.values.contains(v) || program.may_fail(*v),
            Stmt::Declare(local, _) | Stmt::Set(local, _) => used.locals.contains(local),
            Stmt::If(branch) => !branch.then.is_empty() || !branch.otherwise.is_empty(),
            Stmt::Loop(Loop { kind: LoopKind::For { .. }, body, sums, until: None, .. }) => {
                sums.retain(|local| used.locals.contains(local));
                !body.is_empty()
            }
            _ => true,
        }
    });
}
