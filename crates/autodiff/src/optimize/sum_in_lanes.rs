//! Long sums of cotangents inside iterations, in the order of law 8.
//!
//! `for j in 0..n { sum = sum + …; }` is a chain: each addition waits for the one before. The order of such a sum is the
//! adjoint's own, so a loop that does nothing else can have the order of a parallel loop, whose lanes a device takes side by
//! side. Input: an adjoint and the locals in which it adds up cotangents; output: the same adjoint, where such loops say so.
//! Loops whose bounds the parallel loop computes stay chains: their length is data, and they are often short.

use std::collections::BTreeSet;

use ebbtide_ir::{Binary, Block, LocalId, Loop, LoopKind, Op, Par, Program, Stmt, ValueId, walk};

/// Loops of fewer iterations, where that is known, have few terms in each lane.
const FEW: i64 = 64;

pub(crate) fn sum_in_lanes(program: &mut Program, sums: &BTreeSet<LocalId>) {
    let mut body = std::mem::take(&mut program.body);
    let lanes = Lanes { program, sums };
    lanes.program_level(&mut body);
    program.body = body;
}

struct Lanes<'p> {
    program: &'p Program,
    sums: &'p BTreeSet<LocalId>,
}

impl Lanes<'_> {
    fn program_level(&self, block: &mut Block) {
        for stmt in block {
            match stmt {
                Stmt::Par(par) => {
                    let inside = computed_in(par);
                    self.iteration(&mut par.body, &inside);
                }
                other => other.blocks_mut().for_each(|block| self.program_level(block)),
            }
        }
    }

    /// Marks the outermost loops of an iteration that are sums. The depth of recursion is that of nesting in the source.
    fn iteration(&self, block: &mut Block, inside: &BTreeSet<ValueId>) {
        for stmt in block {
            if let Stmt::Loop(l) = stmt
                && let Some(sums) = self.summed(l, inside)
            {
                l.sums = sums;
            } else {
                stmt.blocks_mut().for_each(|block| self.iteration(block, inside));
            }
        }
    }

    /// The locals to which a loop adds, if it does nothing else and may be long.
    fn summed(&self, l: &Loop, inside: &BTreeSet<ValueId>) -> Option<Vec<LocalId>> {
        let LoopKind::For { from, to, .. } = l.kind else { return None };
        let known = |v: &ValueId| {
            !inside.contains(v) || matches!(self.program.op(*v), Op::Literal(_) | Op::Scalar(_) | Op::Dim(..))
        };
        if l.until.is_some() || !l.sums.is_empty() || ![from, to].iter().all(known) {
            return None;
        }
        let number = |v| self.program.literal(v).and_then(|literal| literal.to_i64());
        if let (Some(from), Some(to)) = (number(from), number(to))
            && to.saturating_sub(from) < FEW
        {
            return None;
        }
        let (mut declared, mut set) = (BTreeSet::new(), Vec::new());
        let (mut read, mut pure) = (Vec::new(), true);
        walk(&l.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Get(local) = self.program.op(*v) {
                    read.push((*local, *v));
                }
            }
            Stmt::Declare(local, _) => drop(declared.insert(*local)),
            Stmt::Set(local, v) => set.push((*local, *v)),
            Stmt::If(_) | Stmt::Loop(_) => {}
            _ => pure = false,
        });
        set.retain(|(local, _)| !declared.contains(local));
        let carried: BTreeSet<LocalId> = set.iter().map(|(local, _)| *local).collect();
        // What is read of a sum goes into the next value of it alone.
        let is_sum = |local: &LocalId| {
            let reads: BTreeSet<ValueId> = read.iter().filter(|r| r.0 == *local).map(|r| r.1).collect();
            let mut sets = set.iter().filter(|s| s.0 == *local);
            let adds = |(_, v): &(LocalId, ValueId)| match self.program.op(*v) {
                Op::Binary(Binary::Add, a, b) => reads.contains(a) != reads.contains(b),
                _ => false,
            };
            self.sums.contains(local) && sets.all(adds) && self.uses(&l.body, &reads) == reads.len()
        };
        let sums = pure && !carried.is_empty() && carried.iter().all(is_sum);
        sums.then(|| carried.into_iter().collect())
    }

    /// How often these values are used.
    fn uses(&self, block: &Block, values: &BTreeSet<ValueId>) -> usize {
        let mut count = 0;
        walk(block, &mut |stmt| {
            count += stmt.uses().iter().filter(|v| values.contains(v)).count();
            if let Stmt::Let(v) = stmt {
                count += self.program.op(*v).operands().filter(|v| values.contains(v)).count();
            }
        });
        count
    }
}

/// The values that differ between iterations, or may.
fn computed_in(par: &Par) -> BTreeSet<ValueId> {
    let mut values: BTreeSet<ValueId> = par.ranges.iter().map(|range| range.var).collect();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(values.insert(*v)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(values.insert(*var)),
        _ => {}
    });
    values
}
