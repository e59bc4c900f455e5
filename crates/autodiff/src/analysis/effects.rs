//! What statements read, write and exchange.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Access, ArrayId, Block, Combine, LibraryOp, Loop, LoopKind, Op, Par, Program, Role, Stmt, Store, walk,
    written,
};

/// The arrays that a loop reads, its head included.
pub(crate) fn reads(program: &Program, l: &Loop) -> BTreeSet<ArrayId> {
    let mut read = reads_of(program, &l.body);
    if let LoopKind::While { head, .. } = &l.kind {
        read.extend(reads_of(program, head));
    }
    read
}

/// The arrays that a block reads. What is added to is read too, but that matters only where something else reads it.
pub(crate) fn reads_of(program: &Program, block: &[Stmt]) -> BTreeSet<ArrayId> {
    let mut read = BTreeSet::new();
    walk(block, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            if let Op::Load(a, _) = program.op(*v) {
                read.insert(*a);
            }
        }
        Stmt::Update(Combine::Min | Combine::Max, s) => drop(read.insert(s.array)),
        Stmt::Copy { from, .. } => drop(read.insert(*from)),
        Stmt::Library(call) => {
            read.extend(&call.reads);
            if let LibraryOp::Custom(_) = call.op {
                // What it may write it may read before.
                read.extend(&call.writes);
            }
        }
        Stmt::Region(region) => read.extend(region.flag),
        _ => {}
    });
    read
}

/// The arrays that a parallel loop writes.
pub(crate) fn written_by(par: &Par) -> BTreeSet<ArrayId> {
    written(&par.body).into_iter().collect()
}

/// The one write of an array in a parallel loop, where it is unconditional.
pub(crate) fn only_store(par: &Par, array: ArrayId) -> Option<&Store> {
    let mut writes = 0;
    walk(&par.body, &mut |stmt| {
        writes += usize::from(matches!(stmt, Stmt::Store(s) | Stmt::Update(_, s) if s.array == array));
    });
    if writes != 1 {
        return None;
    }
    par.body.iter().find_map(|stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) if s.array == array => Some(s),
        _ => None,
    })
}

/// Is the array the caller's and written by the program?
pub(crate) fn is_written_param(source: &Program, array: ArrayId) -> bool {
    source.array(array).role == Role::Param(Access::Write)
}

/// The arrays that a block changes: where it yields, the host may change every array that the caller lends for
/// writing.
pub(crate) fn changes(program: &Program, block: &Block) -> Vec<ArrayId> {
    let mut changed = written(block);
    let mut yields = false;
    walk(block, &mut |stmt| yields |= matches!(stmt, Stmt::Region(region) if region.flag.is_some()));
    if yields {
        changed.extend(program.array_ids().filter(|a| program.array(*a).role == Role::Param(Access::Write)));
        changed.sort_unstable();
        changed.dedup();
    }
    changed
}

/// For each array the first of those that it is swapped with, directly or through others.
pub(crate) fn swap_classes(program: &Program) -> BTreeMap<ArrayId, ArrayId> {
    let mut class: BTreeMap<ArrayId, ArrayId> = program.array_ids().map(|a| (a, a)).collect();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Swap(a, b) = stmt {
            let (x, y) = (class[a], class[b]);
            class.values_mut().filter(|c| **c == x.max(y)).for_each(|c| *c = x.min(y));
        }
    });
    class
}
