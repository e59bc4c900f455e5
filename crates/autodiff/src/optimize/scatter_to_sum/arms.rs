//! Updates inside of branches.
//!
//! A sum over preimages runs the statement of an update once more. Where that is a branch, `if c { let s = sum(..); for k { d_w[k] +=
//! f(s) * x[k]; } }`, each element would compute `s` again for every iteration, and the work would grow with the square of what the
//! loops are long. So the sum runs no more of an arm than the statement that holds the update, and what the arm computed before it is
//! kept by the iteration that did.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Branch, LocalId, Stmt, ValueId};

use super::slice::{Wanted, changes, defined, only, updates};

/// An arm of a branch around updates.
#[derive(Clone, Copy)]
pub(super) struct Arm<'b> {
    branch: &'b Branch,
    side: Side,
    /// Which statement of the arm holds the updates.
    pub place: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Then,
    Otherwise,
}

/// The way from a statement to a place in an arm inside of it.
pub(super) type Path = Vec<(Side, usize)>;

impl<'b> Arm<'b> {
    fn block(&self) -> &'b Block {
        match self.side {
            Side::Then => &self.branch.then,
            Side::Otherwise => &self.branch.otherwise,
        }
    }

    /// Does a value come to life in the arm?
    pub fn defines(&self, v: ValueId) -> bool {
        defined(&[], self.block()).contains(&v)
    }

    /// Does the arm declare or set the local?
    pub fn changes(&self, local: LocalId) -> bool {
        changes(self.block(), local)
    }
}

/// The way to the last of these arms, and to the statement in it that holds the updates.
pub(super) fn path(arms: &[Arm<'_>]) -> Path {
    arms.iter().map(|arm| (arm.side, arm.place)).collect()
}

/// The arms around updates, one inside the other, and the statement that holds the updates with nothing but itself: as a block inside
/// of its branches.
pub(super) fn arms_around<'b>(wanted: &Wanted<'b>) -> (Vec<Arm<'b>>, Block) {
    let (mut arms, mut stmt, mut before) = (Vec::new(), wanted.stmt, 0);
    while let Stmt::If(branch) = stmt {
        let (mut holding, mut count) = (Vec::new(), before);
        for (side, block) in [(Side::Then, &branch.then), (Side::Otherwise, &branch.otherwise)] {
            for (place, inner) in block.iter().enumerate() {
                if wanted.is_in(count, inner) {
                    holding.push((Arm { branch, side, place }, inner, count));
                }
                count += updates(inner);
            }
        }
        let [(arm, inner, count)] = holding.as_slice() else { break };
        arms.push(*arm);
        (stmt, before) = (inner, *count);
    }
    let here: BTreeSet<usize> = wanted.numbers.iter().map(|number| number - before).collect();
    let around = |block: Block, arm: &Arm<'b>| {
        let (then, otherwise) = match arm.side {
            Side::Then => (block, Block::new()),
            Side::Otherwise => (Block::new(), block),
        };
        vec![Stmt::If(Branch { condition: arm.branch.condition, then, otherwise })]
    };
    let block = arms.iter().rev().fold(vec![only(stmt, &here)], around);
    (arms, block)
}

/// Puts stores into arms of a statement.
pub(super) fn insert(stmt: &mut Stmt, stores: &BTreeMap<Path, Block>) {
    // What stands deeper, and then what stands later, comes first: the others stay where they are.
    let mut all: Vec<(&Path, &Block)> = stores.iter().collect();
    all.sort_by_key(|(path, _)| (path.len(), (*path).clone()));
    all.into_iter().rev().for_each(|(path, block)| insert_at(stmt, path, block));
}

/// The depth of recursion is that of branches.
fn insert_at(stmt: &mut Stmt, path: &[(Side, usize)], stores: &Block) {
    let (Stmt::If(branch), Some(((side, place), rest))) = (stmt, path.split_first()) else { return };
    let block = match side {
        Side::Then => &mut branch.then,
        Side::Otherwise => &mut branch.otherwise,
    };
    match block.get_mut(*place) {
        Some(_) if rest.is_empty() => drop(block.splice(place..place, stores.iter().cloned())),
        Some(inner) => insert_at(inner, rest, stores),
        None => {}
    }
}
