//! Which values are printed where they are used, and which by name.

use crate::syntax::ids::ValueId;
use crate::syntax::op::Op;
use crate::syntax::program::{Block, Call, Piece, Program, Role, Stmt, walk};

/// Which values are printed where they are used.
pub(super) fn inlined(program: &Program) -> Vec<bool> {
    let mut uses = vec![0u32; program.values.len()];
    let mut count = |v: ValueId| uses[v.index()] += 1;
    for array in &program.arrays {
        if let Role::Temp(shape) = &array.role {
            shape.iter().for_each(|v| count(*v));
        }
    }
    walk(&program.body, &mut |stmt| {
        stmt.uses().into_iter().for_each(&mut count);
        match stmt {
            Stmt::Let(v) => program.op(*v).operands().for_each(&mut count),
            Stmt::Call(Call { ruled: Some(ruled), .. }) => {
                ruled.arguments.iter().filter_map(|bound| bound.scalar()).for_each(&mut count);
            }
            _ => {}
        }
    });
    for print in &program.prints {
        for piece in &print.pieces {
            if let Piece::Value(values, _) = piece {
                values.iter().for_each(|v| count(*v));
            }
        }
    }
    let mut inlined: Vec<bool> = program
        .values
        .iter()
        .zip(&uses)
        .map(|(value, uses)| match value.op {
            Op::Literal(_) | Op::Scalar(_) => true,
            Op::LoopVar => false,
            // Named or shared values are shown once, by name.
            _ => value.name.is_none() && *uses == 1,
        })
        .collect();
    demote_deep(program, &mut inlined);
    demote_moved_reads(program, &program.body, &mut inlined);
    inlined
}

/// How deep an expression may be, so that neither printing nor reading it needs much of the stack.
const DEPTH: usize = 48;

/// Long chains of operations are shown in pieces.
fn demote_deep(program: &Program, inlined: &mut [bool]) {
    let mut depths = vec![0; inlined.len()];
    walk(&program.body, &mut |stmt| {
        let Stmt::Let(v) = stmt else { return };
        let inner = program.op(*v).operands().filter(|o| inlined[o.index()]).map(|o| depths[o.index()]).max();
        let depth = inner.unwrap_or(0) + 1;
        depths[v.index()] = depth;
        if depth > DEPTH {
            inlined[v.index()] = false;
        }
    });
}

/// A read, or what may fail, may not be printed after a write that it came before, nor inside another block.
fn demote_moved_reads(program: &Program, block: &Block, inlined: &mut [bool]) {
    // Reads printed so far that no statement has shown yet: (read, the value that carries it).
    let mut pending: Vec<ValueId> = Vec::new();
    for stmt in block {
        match stmt {
            Stmt::Let(v) if inlined[v.index()] => {
                let carries = !program.op(*v).is_pure()
                    || program.may_fail(*v)
                    || program.op(*v).operands().any(|o| pending.contains(&o));
                pending.retain(|p| !program.op(*v).operands().any(|o| o == *p));
                if carries {
                    pending.push(*v);
                }
            }
            _ => {
                let mut used = stmt.uses();
                if let Stmt::Let(v) = stmt {
                    used.extend(program.op(*v).operands());
                    pending.retain(|p| !used.contains(p));
                    continue;
                }
                // What this statement itself shows is read before it writes.
                let has_blocks = stmt.blocks().next().is_some();
                let shown_late = matches!(stmt, Stmt::Loop(_)) && has_blocks;
                pending.retain(|p| shown_late || !used.contains(p));
                for p in pending.drain(..) {
                    inlined[p.index()] = false;
                }
            }
        }
        for inner in stmt.blocks() {
            demote_moved_reads(program, inner, inlined);
        }
    }
    // A value that the block's owner uses (`until`, a `while` condition) may stay; others were shown already.
}
