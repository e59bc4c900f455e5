//! Common subexpressions: what was computed before is not computed again.

use std::collections::{BTreeSet, HashMap};

use super::{replace_inside, replace_uses};
use crate::syntax::*;

type Known = HashMap<(Op, Type), ValueId>;

/// In parallel bodies, uses the first of several values that are certain to be equal.
///
/// Elements count where the loop does not write their array. What a value is computed for the second time for
/// can fail only where the first one failed.
pub fn share_common_values(program: &Program) -> Program {
    let mut after = program.clone();
    let mut body = std::mem::take(&mut after.body);
    program_level(&mut after, &mut body, &Known::new());
    after.body = body;
    after
}

fn key(program: &Program, v: ValueId) -> (Op, Type) {
    (*program.op(v), program.ty(v))
}

fn is_fixed(op: &Op, written: &BTreeSet<ArrayId>) -> bool {
    match op {
        Op::Load(array, _) => !written.contains(array),
        op => op.is_pure() && *op != Op::LoopVar,
    }
}

fn program_level(program: &mut Program, block: &mut Block, known: &Known) {
    let mut known = known.clone();
    for stmt in block {
        match stmt {
            // Elements may change before the next loop: only pure values are known there.
            Stmt::Let(v) if program.op(*v).is_pure() && *program.op(*v) != Op::LoopVar => {
                known.entry(key(program, *v)).or_insert(*v);
            }
            Stmt::Par(par) => {
                let written: BTreeSet<ArrayId> = written(&par.body).into_iter().collect();
                share(program, &mut par.body, &known, &written);
            }
            _ => stmt.blocks_mut().for_each(|inner| program_level(program, inner, &known)),
        }
    }
}

fn share(program: &mut Program, block: &mut Block, known: &Known, written: &BTreeSet<ArrayId>) {
    let mut known = known.clone();
    let mut same: HashMap<ValueId, ValueId> = HashMap::new();
    for mut stmt in std::mem::take(block) {
        {
            let with = |v: ValueId| same.get(&v).copied().unwrap_or(v);
            replace_uses(&mut stmt, &with);
            if let Stmt::Let(v) = &stmt {
                let op = program.op(*v).map(with);
                program.values[v.index()].op = op;
            } else if !same.is_empty() {
                stmt.blocks_mut().for_each(|inner| replace_inside(program, inner, &with));
            }
        }
        match &mut stmt {
            Stmt::Let(v) if is_fixed(program.op(*v), written) => {
                let first = *known.entry(key(program, *v)).or_insert(*v);
                if first < *v {
                    same.insert(*v, first);
                    continue;
                }
            }
            Stmt::Loop(l) => {
                if let LoopKind::While { head, condition } = &mut l.kind {
                    share_nested(program, head, &known, written, Some(*condition));
                }
                share_nested(program, &mut l.body, &known, written, l.until);
            }
            _ => stmt.blocks_mut().for_each(|inner| share(program, inner, &known, written)),
        }
        block.push(stmt);
    }
}

/// A block that computes a condition of its loop.
fn share_nested(
    program: &mut Program,
    block: &mut Block,
    known: &Known,
    written: &BTreeSet<ArrayId>,
    condition: Option<ValueId>,
) {
    let before: BTreeSet<ValueId> = lets(block);
    share(program, block, known, written);
    // The loop knows its condition by name: it is still computed.
    if let Some(condition) = condition
        && before.contains(&condition)
        && !lets(block).contains(&condition)
    {
        block.push(Stmt::Let(condition));
    }
}

fn lets(block: &Block) -> BTreeSet<ValueId> {
    block.iter().filter_map(|stmt| if let Stmt::Let(v) = stmt { Some(*v) } else { None }).collect()
}
