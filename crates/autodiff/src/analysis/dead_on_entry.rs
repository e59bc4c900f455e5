//! Arrays that an iteration of a loop replaces before it reads them: no slot need hold what they held before.

use std::collections::BTreeSet;

use ebbtide_ir::{Affines, ArrayId, Loop, LoopKind, Op, Par, Program, Stmt, walk};

use crate::analysis::effects::{only_store, reads_of};
use crate::analysis::index_inverse::covers;

/// The arrays, by their names when a pass begins, of which the pass writes every element before it reads one.
///
/// Of a loop `next[i] = f(u, i); swap(u, next)` that is `next`.
pub(crate) fn dead_on_entry(source: &Program, affines: &Affines, l: &Loop) -> BTreeSet<ArrayId> {
    // What each array is called by now, as long as nothing has touched it.
    let mut untouched: Vec<(ArrayId, ArrayId)> = source.array_ids().map(|a| (a, a)).collect();
    if let LoopKind::While { head, .. } = &l.kind {
        let read = reads_of(source, head);
        untouched.retain(|(_, now)| !read.contains(now));
    }
    let mut replaced = BTreeSet::new();
    for stmt in &l.body {
        let touched: BTreeSet<ArrayId> = match stmt {
            Stmt::Swap(a, b) => {
                for (_, now) in &mut untouched {
                    *now = if *now == *a {
                        *b
                    } else if *now == *b {
                        *a
                    } else {
                        *now
                    };
                }
                continue;
            }
            // A host may read and change everything.
            Stmt::Region(_) => break,
            _ => {
                let block = std::slice::from_ref(stmt);
                reads_of(source, block).into_iter().chain(ebbtide_ir::written(block)).collect()
            }
        };
        untouched.retain(|(first, now)| {
            if touched.contains(now) && replaces(source, affines, stmt, *now) {
                replaced.insert(*first);
            }
            !touched.contains(now)
        });
    }
    replaced
}

/// Does the statement write every element of the array and read none?
fn replaces(source: &Program, affines: &Affines, stmt: &Stmt, array: ArrayId) -> bool {
    match stmt {
        Stmt::Fill(to, _) => *to == array,
        Stmt::Copy { from, to } => *to == array && *from != array,
        Stmt::Library(call) => call.op.replaces_all() && !call.reads.contains(&array),
        Stmt::Par(par) => par_replaces(source, affines, par, array),
        _ => false,
    }
}

fn par_replaces(source: &Program, affines: &Affines, par: &Par, array: ArrayId) -> bool {
    let mut reads = false;
    walk(&par.body, &mut |stmt| {
        reads |= match stmt {
            Stmt::Let(v) => matches!(source.op(*v), Op::Load(a, _) if *a == array),
            Stmt::Update(_, s) => s.array == array,
            _ => false,
        };
    });
    !reads && only_store(par, array).is_some_and(|store| covers(source, affines, par, array, store.index))
}
