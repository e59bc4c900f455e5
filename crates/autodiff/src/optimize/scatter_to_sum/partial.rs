//! Sums over some of the variables of a parallel loop, into a shadow that the loop also reads and overwrites.
//!
//! In `for (i, j) in par(..) { let g = d_a[[i, j]]; .. d_a[[k, j]] += g * u; d_a[[i, k]] += g * v; }` iterations meet in the elements of
//! a row and of a column. Where the loop touches these in no other way, each of the two sums is a loop of its own, before it:
//! `for j in par(..) { for i in .. { sum += ..; } d_a[[k, j]] += sum; }`.
//!
//! - Input: the body of a loop that reads shadows before it writes them, and the updates at such elements.
//! - Output: the body without these updates, and the loops.
//! - Invariant: what an element gets is added in ascending order of the variables that it does not depend on.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affines, ArrayId, Binary, Block, Branch, Combine, Compare, Indices, Op, Par, Range, Safety, Stmt, Store,
    ValueId, written,
};

use super::copy::Copier;
use super::slice::{defined, read_by};
use crate::analysis::index_preimage::{Part, Step, Variable};
use crate::writer::prune::prune;
use crate::writer::{Writer, both};

/// Takes these updates of shadows out of a loop; `shadows` are all that the loop reads and overwrites.
pub(crate) fn partial_sums(
    w: &mut Writer,
    ranges: &[Range],
    body: Block,
    (updates, shadows): (&[(ArrayId, Indices)], &BTreeSet<ArrayId>),
) -> (Block, Vec<Par>) {
    if updates.is_empty() {
        return (body, Vec::new());
    }
    let affines = Affines::of(&w.program);
    let changed: BTreeSet<ArrayId> = written(&body).into_iter().filter(|a| !shadows.contains(a)).collect();
    let taker = Taker { ranges, affines: &affines, inside: defined(ranges, &body), changed };
    let (mut left, mut loops) = (Block::new(), Vec::new());
    for (at, stmt) in body.iter().enumerate() {
        match stmt {
            Stmt::Update(Combine::Add, s) if updates.contains(&(s.array, s.index)) => {
                match taker.take(w, &body[..at], s) {
                    Some(par) => loops.push(par),
                    None => left.push(stmt.clone()),
                }
            }
            _ => left.push(stmt.clone()),
        }
    }
    (if loops.is_empty() { left } else { prune(&w.program, left) }, loops)
}

struct Taker<'a> {
    ranges: &'a [Range],
    affines: &'a Affines,
    /// What comes to life in the loop.
    inside: BTreeSet<ValueId>,
    /// What the loop writes beside the shadows.
    changed: BTreeSet<ArrayId>,
}

impl Taker<'_> {
    /// Writes the loop for one update; `before` are the statements before it.
    fn take(&self, w: &mut Writer, before: &[Stmt], s: &Store) -> Option<Par> {
        let values = before.iter().filter(|stmt| matches!(stmt, Stmt::Let(_))).cloned();
        let slice = values.chain([Stmt::Update(Combine::Add, s.clone())]).collect();
        let slice = prune(&w.program, slice);
        let reads_local =
            |stmt: &Stmt| matches!(stmt, Stmt::Let(v) if matches!(w.program.op(*v), Op::Get(_)));
        let is_sum = |v: &ValueId| self.is_sum(w, *v);
        if slice.iter().any(reads_local)
            || !read_by(&w.program, &slice).is_disjoint(&self.changed)
            || !s.index.as_slice().iter().all(is_sum)
        {
            return None;
        }
        let occurs =
            |r: &&Range| s.index.as_slice().iter().any(|v| self.affines.form(*v).coefficient(r.var) != 0);
        let (own, rest): (Vec<&Range>, Vec<&Range>) = self.ranges.iter().partition(occurs);
        let mut copier_ranges = Vec::new();
        for r in own {
            let name = w.program.value(r.var).name.clone().unwrap_or_else(|| "i".to_string());
            copier_ranges.push((r.var, Range { var: w.loop_var(&name), ..*r }));
        }
        w.begin();
        let mut runs = None;
        for r in &rest {
            let here = w.compare(Compare::Lt, r.from, r.to);
            runs = Some(both(w, runs, here));
        }
        // Without iterations nothing is touched.
        let Some(condition) = runs else {
            w.end();
            return None;
        };
        w.begin();
        let zero = w.real(w.program.array(s.array).ty, 0.0);
        let sum = w.sum(zero);
        let mut copier = Copier::new(&self.inside, vec![sum]);
        copier_ranges.iter().for_each(|(var, range)| copier.give(*var, range.var));
        let each = |r: &&Range| Step::Each { variable: Variable::parallel(r), within: None, part: Part::All };
        let steps: Vec<Step> = rest.iter().map(each).collect();
        copier.each(w, &steps, &[], &|copier, w| copier.block(w, &slice));
        let index = s.index.map(|v| copier.again(w, v));
        let total = w.get(sum);
        w.push(Stmt::Update(Combine::Add, Store { index, value: total, ..s.clone() }));
        let then = w.end();
        w.push(Stmt::If(Branch { condition, then, otherwise: Block::new() }));
        let body = w.end();
        let (id, body) = (w.new_par(), prune(&w.program, body));
        let ranges = copier_ranges.into_iter().map(|(_, range)| range).collect();
        Some(Par { safety: Safety::Proved, ..Par::over(id, ranges, body) })
    }

    /// Is the index made of variables and of what is known before the loop by operations that cannot fail?
    fn is_sum(&self, w: &Writer, index: ValueId) -> bool {
        let mut work = vec![index];
        while let Some(v) = work.pop() {
            if !self.inside.contains(&v) || self.ranges.iter().any(|r| r.var == v) {
                continue;
            }
            match w.program.op(v) {
                Op::Literal(_) | Op::Dim(..) => {}
                op @ Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) => work.extend(op.operands()),
                _ => return false,
            }
        }
        true
    }
}
