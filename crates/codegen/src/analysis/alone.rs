//! Which loops of a segment one thread can run alone. Input: a segment; output: loops.
//!
//! All threads run the loops of a program alike, and meet wherever one of them wrote what all read next: in a loop that goes from
//! element to element, in every iteration. One thread alone need not wait for anybody, and the others have nothing to do there but
//! to wait once.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, LocalId, Loop, LoopId, LoopKind, Program, Stmt};

use crate::analysis::packed_tapes::{PackedTapes, on_tape};

/// The outermost loops in which there is nothing to share between threads, each with the locals from outside that it sets. How far it
/// is on tapes nobody else knows.
pub(crate) fn loops_for_one(
    program: &Program,
    packed: &PackedTapes,
    segment: &Block,
) -> BTreeMap<LoopId, Vec<LocalId>> {
    let mut found = Found { program, packed, loops: Vec::new(), shared: BTreeSet::new() };
    found.block(segment);
    let Found { mut loops, mut shared, .. } = found;
    // Who does not run alone uses his tapes with all.
    while let Some(k) = loops.iter().position(|l| !l.groups.is_disjoint(&shared)) {
        shared.extend(loops.swap_remove(k).groups);
    }
    loops.into_iter().map(|l| (l.id, l.locals)).collect()
}

/// A loop that one thread could run alone, and the groups of packed tapes that it uses.
struct Candidate {
    id: LoopId,
    /// The locals that it sets and does not declare.
    locals: Vec<LocalId>,
    groups: BTreeSet<usize>,
}

struct Found<'a> {
    program: &'a Program,
    packed: &'a PackedTapes,
    loops: Vec<Candidate>,
    /// The groups of packed tapes that all threads use.
    shared: BTreeSet<usize>,
}

impl Found<'_> {
    /// The statements of a block. The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) {
        let mut on_tapes = 0;
        for (k, stmt) in block.iter().enumerate() {
            if on_tapes > 0 {
                on_tapes -= 1;
            } else if let Some((group, statements)) = self.on_tape(&block[k..]) {
                self.shared.insert(group);
                on_tapes = statements - 1;
            } else if let Some(candidate) = self.candidate(stmt) {
                self.loops.push(candidate);
            } else if !matches!(stmt, Stmt::Par(_)) {
                stmt.blocks().for_each(|block| self.block(block));
            }
        }
    }

    /// The group of packed tapes that the first statements of a block use, and how many they are.
    fn on_tape(&self, block: &[Stmt]) -> Option<(usize, usize)> {
        let found = on_tape(self.program, block)?;
        let (group, _) = self.packed.find(found.array())?;
        Some((group, found.statements()))
    }

    fn candidate(&self, stmt: &Stmt) -> Option<Candidate> {
        let Stmt::Loop(l) = stmt else { return None };
        let mut inside =
            Inside { found: self, declared: BTreeSet::new(), set: BTreeSet::new(), groups: BTreeSet::new() };
        let can = inside.loop_can_be_alone(l);
        let locals = inside.set.difference(&inside.declared).copied().collect();
        can.then_some(Candidate { id: l.id, locals, groups: inside.groups })
    }
}

/// What a loop declares and uses, as far as it is looked at.
struct Inside<'a> {
    found: &'a Found<'a>,
    declared: BTreeSet<LocalId>,
    set: BTreeSet<LocalId>,
    groups: BTreeSet<usize>,
}

impl Inside<'_> {
    fn loop_can_be_alone(&mut self, l: &Loop) -> bool {
        let head = match &l.kind {
            LoopKind::While { head, .. } => self.block(head),
            LoopKind::For { .. } | LoopKind::Forever => true,
        };
        head && self.block(&l.body)
    }

    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &[Stmt]) -> bool {
        let mut on_tapes = 0;
        for (k, stmt) in block.iter().enumerate() {
            if on_tapes > 0 {
                on_tapes -= 1;
                continue;
            }
            if let Some((group, statements)) = self.found.on_tape(&block[k..]) {
                self.groups.insert(group);
                on_tapes = statements - 1;
                continue;
            }
            let can = match stmt {
                Stmt::Let(_) | Stmt::Store(_) | Stmt::Update(..) => true,
                Stmt::Declare(local, _) => {
                    self.declared.insert(*local);
                    true
                }
                Stmt::Set(local, _) => {
                    self.set.insert(*local);
                    true
                }
                Stmt::If(branch) => self.block(&branch.then) && self.block(&branch.otherwise),
                Stmt::Loop(l) => self.loop_can_be_alone(l),
                Stmt::Call(call) => self.block(&call.body),
                _ => false,
            };
            if !can {
                return false;
            }
        }
        true
    }
}
