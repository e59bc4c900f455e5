//! Reversed loops of which one iteration may be alone.
//!
//! - Input: a loop that reverses one which a condition at run time showed to be safe.
//! - Output: the condition under which it has one iteration, and that iteration by itself, where it may read or replace an element
//!   of a shadow that all iterations add to.
//! - Invariant: with two iterations none does. The loop read that element in both, so that neither wrote it; one iteration may write
//!   what it reads. What is added to elements that all iterations share arrives when the loop ends, which is too late for it.

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::{
    ArrayId, Block, Compare, Indices, LoopKind, Op, Par, Program, Range, Safety, Stmt, ValueId, walk,
};

use crate::analysis::sections::is_computable;
use crate::writer::rename::rename;
use crate::writer::{Writer, both};

/// The condition under which the loop has one iteration, and that one, in a loop in which what it adds arrives at once.
pub(super) fn alone(w: &mut Writer, own: &Par) -> Option<(ValueId, Block)> {
    if own.requires.is_empty() || !touches_what_all_add_to(&w.program, own) {
        return None;
    }
    let (zero, one) = (w.index(0), w.index(1));
    let mut condition = None;
    for r in &own.ranges {
        let length = w.sub(r.to, r.from);
        let single = w.compare(Compare::Eq, length, one);
        condition = Some(both(w, condition, single));
    }
    let mut map: HashMap<ValueId, ValueId> = own.ranges.iter().map(|r| (r.var, r.from)).collect();
    let body = rename(w, own.body.clone(), &mut map);
    let ranges = vec![Range { var: w.loop_var("alone"), from: zero, to: one }];
    let (id, ordering, site) = (w.new_par(), own.ordering, own.site.clone());
    let par = Par { id, ranges, body, ordering, requires: Vec::new(), safety: Safety::Proved, site };
    condition.map(|condition| (condition, vec![Stmt::Par(par)]))
}

/// Is there an array to one element of which all iterations add, and that they touch elsewhere in another way?
fn touches_what_all_add_to(program: &Program, par: &Par) -> bool {
    let mut inside: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    let mut added: Vec<(ArrayId, Indices)> = Vec::new();
    let mut touched: Vec<(ArrayId, Indices)> = Vec::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            inside.insert(*v);
            if let Op::Load(array, index) = *program.op(*v) {
                touched.push((array, index));
            }
        }
        Stmt::Loop(l) => {
            if let LoopKind::For { var, .. } = l.kind {
                inside.insert(var);
            }
        }
        Stmt::Update(_, s) => added.push((s.array, s.index)),
        Stmt::Store(s) => touched.push((s.array, s.index)),
        _ => {}
    });
    let shared = |index: &Indices| index.as_slice().iter().all(|v| is_computable(program, *v, &[], &inside));
    let meets = |array: ArrayId, index: Indices| touched.iter().any(|(a, i)| *a == array && *i != index);
    added.iter().any(|(array, index)| shared(index) && meets(*array, *index))
}
