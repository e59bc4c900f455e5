//! Regions that yield, in a differentiated run.
//!
//! A yielding region is an `undo` region: its abandoned execution leaves nothing behind but its flag. Which execution
//! of a region it is, is counted in the program itself, in an array that slots carry like any other: so what the host
//! did is found again when that execution is run again.

use std::collections::BTreeMap;

use ebbtide_ir::{
    Access, Affines, After, Again, ArrayDecl, ArrayId, Binary, Block, Indices, Literal, Op, Program, Push,
    Region, RegionId, Role, Stmt, Store, Type, Undo, walk, written,
};

use crate::adjoint::Maker;
use crate::error::Error;
use crate::needed::reads_of;
use crate::rename::rename;
use crate::reread::reread;
use crate::writer::Writer;

/// What the driver must know of a region that yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// Counts the finished executions of the region.
    pub visits: ArrayId,
    /// The flag of the region.
    pub flag: ArrayId,
    /// An array that an abandoned execution may leave changed for the next one, so that a plain run computes something
    /// else than this one, which undoes everything: then a yield is an error.
    pub reread: Option<ArrayId>,
}

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
        let store = Stmt::Store(Store { array: visits, index, value, site: None });
        out.extend([Stmt::Let(before), Stmt::Let(one), Stmt::Let(value), store]);
    }
    out
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

impl Maker<'_> {
    /// A region is run as it is, whether its pass is recorded or not; what it needs to be run again is recorded.
    pub(crate) fn forward_region(&mut self, w: &mut Writer, region: &Region) {
        for array in self.region_entry(region) {
            w.push(Stmt::Push(Push { array, after: After::Same }));
        }
        w.push(Stmt::Region(region.clone()));
    }

    /// Reversing a region runs it again, with what the host left, records it and reverses that.
    pub(crate) fn reverse_region(&mut self, w: &mut Writer, region: &Region) -> Result<(), Error> {
        for array in self.region_entry(region).into_iter().rev() {
            w.push(Stmt::Pop(array));
        }
        w.push(Stmt::Host(region.id, Again::Change));
        // Its statements are run and reversed in one go, like those of a whole program.
        let (nested, env) = (std::mem::replace(&mut self.nested, false), self.env.clone());
        w.begin();
        self.forward(w, &region.body)?;
        let recorded = w.end();
        let mut known = self.env.clone();
        rename(w, recorded, &mut known).into_iter().for_each(|stmt| w.push(stmt));
        self.env = known;
        self.reverse(w, &region.body)?;
        (self.nested, self.env) = (nested, env);
        w.push(Stmt::Host(region.id, Again::Undo));
        Ok(())
    }

    fn region_entry(&self, region: &Region) -> Vec<ArrayId> {
        let whole = vec![Stmt::Region(region.clone())];
        self.entry(reads_of(self.source, &whole), &whole)
    }
}
