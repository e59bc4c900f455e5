//! Yielding regions undo what they did, and count their executions.

use std::collections::BTreeMap;

use ebbtide_ir::{
    Affines, ArrayDecl, ArrayId, Binary, Block, Indices, Literal, Op, Program, Region, RegionId, Role, Stmt,
    Store, Type, Undo, WriteId, walk,
};

use crate::analysis::idempotence::reread;
use crate::analysis::regions::Hosted;

/// Makes yielding regions undo what they did, and counts their executions.
pub(crate) fn count_visits(program: &mut Program) -> BTreeMap<RegionId, Hosted> {
    let mut hosted = BTreeMap::new();
    let Some(index) = Indices::new(&[]) else { return hosted };
    let affines = Affines::of(program);
    let mut reread_by = BTreeMap::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            reread_by.insert(region.id, reread(program, &affines, region));
        }
    });
    let body = std::mem::take(&mut program.body);
    let body = counted(program, body, index, &mut hosted);
    for (id, region) in &mut hosted {
        region.reread = reread_by.get(id).copied().flatten();
    }
    program.body = hosted.values().map(|h: &Hosted| Stmt::Temp(h.visits)).chain(body).collect();
    program.number_writes();
    hosted
}

fn counted(
    program: &mut Program,
    block: Block,
    index: Indices,
    hosted: &mut BTreeMap<RegionId, Hosted>,
) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        stmt.blocks_mut().for_each(|b| *b = counted(program, std::mem::take(b), index, hosted));
        let Stmt::Region(Region { id, flag: Some(flag), undo, .. }) = &mut stmt else {
            out.push(stmt);
            continue;
        };
        *undo = Undo::Everything;
        let name = format!("visits{}", id.index());
        program.arrays.push(ArrayDecl { name, ty: Type::I64, rank: 0, role: Role::Temp(Vec::new()) });
        let visits = ArrayId::from_index(program.arrays.len() - 1);
        hosted.insert(*id, Hosted { visits, flag: *flag, reread: None });
        out.push(stmt);
        let before = program.add_value(Op::Load(visits, index), Type::I64, None);
        let one = program.add_value(Op::Literal(Literal::from(1i64)), Type::I64, None);
        let value = program.add_value(Op::Binary(Binary::Add, before, one), Type::I64, None);
        let store = Stmt::Store(Store { array: visits, index, value, site: None, id: WriteId::UNNUMBERED });
        out.extend([Stmt::Let(before), Stmt::Let(one), Stmt::Let(value), store]);
    }
    out
}
