//! Sums at one element in a loop: what all iterations of a loop inside an iteration add to one and the same element is added up
//! in a local, and the element is touched once.
//!
//! In `for j in .. { d_x[i] += a * b; }` each inner iteration would wait for memory, and lanes of iterations would load and store
//! elements that may lie far apart. Input: the body of a parallel loop of an adjoint; output: the same body, where such
//! updates stand behind their loops. The sum has an order of its own: the terms of the loop first.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Binary, Block, Branch, Combine, Compare, Indices, Literal, Loop, LoopKind, Op, Stmt, Store,
    ValueId, walk,
};

use crate::writer::Writer;

/// Takes updates of these shadows out of the loops of a block. The depth of recursion is that of nesting.
pub(crate) fn sum_in_locals(w: &mut Writer, block: Block, shadows: &BTreeSet<ArrayId>) -> Block {
    let mut out = Block::new();
    for mut stmt in block {
        if let Stmt::If(branch) = &mut stmt {
            branch.then = sum_in_locals(w, std::mem::take(&mut branch.then), shadows);
            branch.otherwise = sum_in_locals(w, std::mem::take(&mut branch.otherwise), shadows);
        }
        let Stmt::Loop(mut l) = stmt else {
            out.push(stmt);
            continue;
        };
        l.body = sum_in_locals(w, std::mem::take(&mut l.body), shadows);
        let (before, after) = take_out(w, &mut l, shadows);
        out.extend(before);
        out.push(Stmt::Loop(l));
        out.extend(after);
    }
    out
}

/// Takes updates out of one loop; gives what stands before it and after it.
fn take_out(w: &mut Writer, l: &mut Loop, shadows: &BTreeSet<ArrayId>) -> (Block, Block) {
    let LoopKind::For { var, from, to } = l.kind else { return Default::default() };
    let mut inside: BTreeSet<ValueId> = [var].into();
    let mut touched: BTreeSet<ArrayId> = BTreeSet::new();
    walk(&l.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            inside.insert(*v);
            if let Op::Load(array, _) = w.program.op(*v) {
                touched.insert(*array);
            }
        }
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
        Stmt::Store(s) => drop(touched.insert(s.array)),
        Stmt::Claim(claim) => touched.extend([claim.array, claim.taken]),
        _ => {}
    });
    let (mut before, mut updates) = (Block::new(), Block::new());
    for stmt in std::mem::take(&mut l.body) {
        let taken = match &stmt {
            Stmt::Update(Combine::Add, s) if shadows.contains(&s.array) && !touched.contains(&s.array) => {
                w.begin();
                let index: Option<Vec<ValueId>> =
                    s.index.as_slice().iter().map(|v| outside(w, *v, &inside)).collect();
                let computed = w.end();
                index.and_then(|index| Indices::new(&index)).map(|index| (s, index, computed))
            }
            _ => None,
        };
        let Some((s, index, computed)) = taken else {
            l.body.push(stmt);
            continue;
        };
        w.begin();
        let zero = w.real(w.program.array(s.array).ty, 0.0);
        let sum = w.sum(zero);
        before.extend(w.end());
        w.begin();
        let old = w.get(sum);
        let new = w.add(old, s.value);
        w.push(Stmt::Set(sum, new));
        l.body.extend(w.end());
        w.begin();
        let total = w.get(sum);
        w.push(Stmt::Update(Combine::Add, Store { index, value: total, ..s.clone() }));
        updates.extend(computed);
        updates.extend(w.end());
    }
    if updates.is_empty() || runs(w, from, to) {
        return (before, updates);
    }
    // A loop without inner iterations touches nothing.
    w.begin();
    let condition = w.compare(Compare::Lt, from, to);
    w.push(Stmt::If(Branch { condition, then: updates, otherwise: Block::new() }));
    (before, w.end())
}

/// Does a loop with these bounds have inner iterations, whatever the arguments?
fn runs(w: &Writer, from: ValueId, to: ValueId) -> bool {
    let literal = |v: ValueId| w.program.literal(v).and_then(Literal::to_i64);
    matches!((literal(from), literal(to)), (Some(from), Some(to)) if from < to)
}

/// A value of a loop made again outside of it, where it is the same in all inner iterations and cannot fail. The depth of
/// recursion is that of one index.
fn outside(w: &mut Writer, v: ValueId, inside: &BTreeSet<ValueId>) -> Option<ValueId> {
    if !inside.contains(&v) {
        return Some(v);
    }
    let op = *w.program.op(v);
    let divides = matches!(op, Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, ..));
    if !op.is_pure() || op == Op::LoopVar || divides {
        return None;
    }
    let mut known = Vec::new();
    for o in op.operands() {
        known.push((o, outside(w, o, inside)?));
    }
    let op = op.map(|o| known.iter().find(|k| k.0 == o).map_or(o, |k| k.1));
    let ty = w.ty(v);
    Some(w.value(op, ty))
}
