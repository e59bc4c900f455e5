//! Values that are the same in all iterations of a loop inside an iteration. Input: the loop and what is not proved to be in
//! bounds; output: the values that can stand before it.
//!
//! The C compiler moves arithmetic by itself. Loads it leaves where they are as soon as the loop stores anything, and so all
//! that is computed from them. In the interior, and in the form without checks, a load is proved to be in bounds whether or not the loop has
//! iterations.

use std::collections::BTreeSet;

use ebbtide_ir::{Binary, Block, LocalId, Loop, LoopKind, Op, Program, Stmt, Type, ValueId, walk, written};

use crate::analysis::interior::Unproved;

/// The invariant values of a loop's body, in order, where all elements but these exist.
pub(crate) fn loop_invariants(program: &Program, unproved: &Unproved, l: &Loop) -> Block {
    let LoopKind::For { var, .. } = l.kind else { return Block::new() };
    let (mut inside, mut set): (BTreeSet<ValueId>, BTreeSet<LocalId>) = ([var].into(), BTreeSet::new());
    walk(&l.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(inside.insert(*v)),
        Stmt::Declare(local, _) | Stmt::Set(local, _) => drop(set.insert(*local)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
        _ => {}
    });
    let written = written(&l.body);
    let mut moves = |stmt: &Stmt| {
        let Stmt::Let(v) = stmt else { return false };
        let op = program.op(*v);
        let alone = match op {
            Op::LoopVar => false,
            Op::Get(local) => !set.contains(local),
            Op::Load(array, index) => !written.contains(array) && !unproved.contains(index.as_slice()),
            // It may fail.
            Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, ..) => program.ty(*v).is_float(),
            _ => program.ty(*v) != Type::Bool,
        };
        let moves = alone && op.operands().all(|o| !inside.contains(&o));
        if moves {
            inside.remove(v);
        }
        moves
    };
    let (mut before, mut work) = (Block::new(), vec![&l.body]);
    while let Some(block) = work.pop() {
        before.extend(block.iter().filter(|stmt| moves(stmt)).cloned());
        // What a loop inside has for itself is found when that is printed; what all iterations share stands before both.
        work.extend(block.iter().filter_map(|stmt| match stmt {
            Stmt::Loop(inner) if matches!(inner.kind, LoopKind::For { .. }) => Some(&inner.body),
            _ => None,
        }));
    }
    before
}
