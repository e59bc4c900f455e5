//! Blocks with other values in place of some.

use std::collections::HashMap;
use std::sync::Arc;

use ebbtide_ir::{
    Block, Bound, Branch, Claim, LibraryOp, Loop, LoopKind, Operation, OperationId, Par, Region, Stmt, Store,
    ValueId, Work,
};

use crate::writer::Writer;

/// The block with values replaced; each value of the block that uses a replaced one is made anew, and is in `map`
/// afterwards.
pub(crate) fn rename(w: &mut Writer, block: Block, map: &mut HashMap<ValueId, ValueId>) -> Block {
    block.into_iter().map(|stmt| statement(w, stmt, map)).collect()
}

fn of(map: &HashMap<ValueId, ValueId>, v: ValueId) -> ValueId {
    map.get(&v).copied().unwrap_or(v)
}

fn statement(w: &mut Writer, stmt: Stmt, map: &mut HashMap<ValueId, ValueId>) -> Stmt {
    let store = |map: &HashMap<ValueId, ValueId>, s: Store| Store {
        index: s.index.map(|v| of(map, v)),
        value: of(map, s.value),
        ..s
    };
    match stmt {
        Stmt::Let(v) => Stmt::Let(value(w, v, map)),
        Stmt::Declare(l, v) => Stmt::Declare(l, of(map, v)),
        Stmt::Set(l, v) => Stmt::Set(l, of(map, v)),
        Stmt::Fill(a, v, id) => Stmt::Fill(a, of(map, v), id),
        Stmt::Store(s) => Stmt::Store(store(map, s)),
        Stmt::Update(how, s) => Stmt::Update(how, store(map, s)),
        Stmt::Claim(claim) => Stmt::Claim(Claim { index: claim.index.map(|v| of(map, v)), ..claim }),
        Stmt::If(branch) => Stmt::If(Branch {
            condition: of(map, branch.condition),
            then: rename(w, branch.then, map),
            otherwise: rename(w, branch.otherwise, map),
        }),
        Stmt::Loop(l) => {
            let kind = match l.kind {
                LoopKind::For { var, from, to } => {
                    LoopKind::For { var, from: of(map, from), to: of(map, to) }
                }
                LoopKind::While { head, condition } => {
                    let head = rename(w, head, map);
                    LoopKind::While { head, condition: of(map, condition) }
                }
                LoopKind::Forever => LoopKind::Forever,
            };
            let body = rename(w, l.body, map);
            Stmt::Loop(Loop { kind, body, until: l.until.map(|v| of(map, v)), ..l })
        }
        Stmt::Par(mut par) => {
            for range in &mut par.ranges {
                (range.from, range.to) = (of(map, range.from), of(map, range.to));
            }
            for requirement in &mut par.requires {
                requirement.condition = of(map, requirement.condition);
            }
            Stmt::Par(Par { body: rename(w, par.body, map), ..par })
        }
        Stmt::Library(mut call) => {
            for bound in &mut call.arguments {
                if let Bound::Scalar(v) = bound {
                    *v = of(map, *v);
                }
            }
            // The body of a called program, put back in the end, is part of the block.
            if let LibraryOp::Custom(id) = &mut call.op
                && let Some(operation) = w.program.operations.get(id.index()).cloned()
                && let Work::Inline(body) = &operation.work
            {
                let work = Work::Inline(rename(w, body.clone(), map));
                let (name, rules) = (operation.name.clone(), operation.rules);
                w.program.operations.push(Arc::new(Operation { name, work, rules }));
                *id = OperationId::from_index(w.program.operations.len() - 1);
            }
            Stmt::Library(call)
        }
        Stmt::Region(region) => {
            // Each copy of a region is one of its own: a run continues in the copy that yielded.
            let id = w.new_region(region.id);
            Stmt::Region(Region { id, body: rename(w, region.body, map), ..region })
        }
        other => other,
    }
}

/// A value that stands in the block: the one that replaces it, or itself with replaced operands.
fn value(w: &mut Writer, v: ValueId, map: &mut HashMap<ValueId, ValueId>) -> ValueId {
    if let Some(new) = map.get(&v) {
        return *new;
    }
    let decl = w.program.value(v).clone();
    let op = decl.op.map(|o| of(map, o));
    if op == decl.op {
        return v;
    }
    let new = w.program.add_value(op, decl.ty, decl.site);
    w.program.values[new.index()].name = decl.name;
    map.insert(v, new);
    new
}
