//! What every derivative starts from: the program with calls in place and program-level floats in arrays.

use std::collections::BTreeMap;

use ebbtide_ir::{
    ArrayDecl, ArrayId, Block, Indices, LocalId, Op, Program, Role, Stmt, Store, ValueId, walk,
    walk_program_level,
};

/// The program in the form that transformations take.
pub(crate) fn prepare(source: &Program) -> Program {
    let mut program = source.clone();
    program.body = inline(std::mem::take(&mut program.body));
    floats_in_arrays(&mut program);
    program
}

/// The bodies of called programs in place of the calls.
fn inline(block: Block) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        if let Stmt::Call(call) = stmt {
            out.extend(inline(call.body));
            continue;
        }
        stmt.blocks_mut().for_each(|b| *b = inline(std::mem::take(b)));
        out.push(stmt);
    }
    out
}

/// A mutable float at program level becomes an array of rank 0: then it has a shadow and a tape like any other.
fn floats_in_arrays(program: &mut Program) {
    let mut arrays: BTreeMap<LocalId, ArrayId> = BTreeMap::new();
    let mut locals: Vec<LocalId> = Vec::new();
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Declare(local, _) = stmt
            && program.locals[local.index()].ty.is_float()
        {
            locals.push(*local);
        }
    });
    for local in locals {
        let decl = program.locals[local.index()].clone();
        program.arrays.push(ArrayDecl {
            name: decl.name,
            ty: decl.ty,
            rank: 0,
            role: Role::Temp(Vec::new()),
        });
        arrays.insert(local, ArrayId::from_index(program.arrays.len() - 1));
    }
    if arrays.is_empty() {
        return;
    }
    let mut loads: Vec<(ValueId, ArrayId)> = Vec::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Get(local) = program.op(*v)
            && let Some(array) = arrays.get(local)
        {
            loads.push((*v, *array));
        }
    });
    let Some(index) = Indices::new(&[]) else { return };
    for (v, array) in loads {
        program.values[v.index()].op = Op::Load(array, index);
    }
    let mut body = std::mem::take(&mut program.body);
    rewrite(&mut body, &arrays, index);
    // They exist for the whole launch: what is declared again in a loop is only written again.
    program.body = arrays.values().map(|a| Stmt::Temp(*a)).chain(body).collect();
}

fn rewrite(block: &mut Block, arrays: &BTreeMap<LocalId, ArrayId>, index: Indices) {
    for stmt in block {
        if let Stmt::Declare(local, value) | Stmt::Set(local, value) = stmt
            && let Some(array) = arrays.get(local)
        {
            *stmt = Stmt::Store(Store { array: *array, index, value: *value, site: None });
        }
        stmt.blocks_mut().for_each(|b| rewrite(b, arrays, index));
    }
}
