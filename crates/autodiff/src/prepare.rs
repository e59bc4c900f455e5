//! What every derivative starts from: the program with calls in place, but for those of programs that bring their own derivatives, and program-level variables in arrays.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayDecl, ArrayId, Block, Call, Indices, LocalId, Op, Program, Role, Stmt, Store, Type,
    walk_program_level,
};

use crate::custom::closed;

/// The program in the form that transformations take.
pub(crate) fn prepare(source: &Program) -> Program {
    let mut program = source.clone();
    let body = std::mem::take(&mut program.body);
    program.body = inline(&mut program, body);
    locals_in_arrays(&mut program);
    program
}

/// The bodies of called programs in place of the calls, and of regions that cannot yield in place of these.
fn inline(program: &mut Program, block: Block) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        match stmt {
            Stmt::Call(Call { name, body, ruled: Some(ruled) }) => {
                out.push(closed(program, name, body, ruled))
            }
            Stmt::Call(call) => out.extend(inline(program, call.body)),
            Stmt::Region(region) if region.flag.is_none() => out.extend(inline(program, region.body)),
            _ => {
                stmt.blocks_mut().for_each(|b| *b = inline(program, std::mem::take(b)));
                out.push(stmt);
            }
        }
    }
    out
}

/// A mutable variable at program level becomes an array of rank 0: then it has a shadow and a tape, and slots carry
/// it, like any other.
fn locals_in_arrays(program: &mut Program) {
    let mut arrays: BTreeMap<LocalId, ArrayId> = BTreeMap::new();
    let mut locals: BTreeSet<LocalId> = BTreeSet::new();
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Declare(local, _) = stmt {
            locals.insert(*local);
        }
    });
    for local in locals {
        let decl = program.locals[local.index()].clone();
        let ty = if decl.ty == Type::Index { Type::I64 } else { decl.ty };
        program.arrays.push(ArrayDecl { name: decl.name, ty, rank: 0, role: Role::Temp(Vec::new()) });
        arrays.insert(local, ArrayId::from_index(program.arrays.len() - 1));
    }
    let Some(index) = Indices::new(&[]) else { return };
    let body = std::mem::take(&mut program.body);
    let body = rewrite(program, body, &arrays, index);
    // They exist for the whole launch: what is declared again in a loop is only written again.
    program.body = arrays.values().map(|a| Stmt::Temp(*a)).chain(body).collect();
}

fn rewrite(
    program: &mut Program,
    block: Block,
    arrays: &BTreeMap<LocalId, ArrayId>,
    index: Indices,
) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        stmt.blocks_mut().for_each(|b| *b = rewrite(program, std::mem::take(b), arrays, index));
        match stmt {
            Stmt::Declare(local, value) | Stmt::Set(local, value) => match arrays.get(&local) {
                Some(array) => {
                    let mut value = value;
                    if program.ty(value) == Type::Index {
                        value = program.add_value(Op::Cast(value), Type::I64, None);
                        out.push(Stmt::Let(value));
                    }
                    out.push(Stmt::Store(Store { array: *array, index, value, site: None }));
                }
                None => out.push(stmt),
            },
            Stmt::Let(v) => {
                if let Op::Get(local) = *program.op(v)
                    && let Some(array) = arrays.get(&local)
                {
                    let load = Op::Load(*array, index);
                    program.values[v.index()].op = if program.ty(v) == Type::Index {
                        let loaded = program.add_value(load, Type::I64, None);
                        out.push(Stmt::Let(loaded));
                        Op::Cast(loaded)
                    } else {
                        load
                    };
                }
                out.push(stmt);
            }
            _ => out.push(stmt),
        }
    }
    out
}
