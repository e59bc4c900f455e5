//! Arrays that an iteration of a loop replaces before it reads them: no slot need hold what they held before.

use std::collections::BTreeSet;

use ebbtide_ir::dataflow::{self, Analysis, forward};
use ebbtide_ir::{Affines, ArrayId, Loop, LoopKind, Op, Par, Program, Stmt, walk};

use crate::analysis::effects::{only_store, reads_of};
use crate::analysis::index_inverse::covers;

/// The arrays, by their names when an iteration begins, of which the iteration writes every element before it reads one.
///
/// Of a loop `next[i] = f(u, i); swap(u, next)` that is `next`.
pub(crate) fn dead_on_entry(source: &Program, affines: &Affines, l: &Loop) -> BTreeSet<ArrayId> {
    let mut begin =
        Touched { untouched: source.array_ids().map(|a| (a, a)).collect(), replaced: BTreeSet::new() };
    if let LoopKind::While { head, .. } = &l.kind {
        let read = reads_of(source, head);
        begin.untouched.retain(|(_, now)| !read.contains(now));
    }
    forward(&mut FirstTouch { source, affines }, &l.body, begin).replaced
}

/// What was touched since an iteration began, on every way.
#[derive(Clone, Debug, PartialEq)]
struct Touched {
    /// The arrays that nothing has touched: their names when the iteration began, and now.
    untouched: Vec<(ArrayId, ArrayId)>,
    /// The arrays that were replaced by what touched them first, by their names when the iteration began.
    replaced: BTreeSet<ArrayId>,
}

impl dataflow::Facts for Touched {
    fn join(&mut self, other: &Touched) {
        self.untouched.retain(|names| other.untouched.contains(names));
        self.replaced.retain(|array| other.replaced.contains(array));
    }

    fn swap(&mut self, a: ArrayId, b: ArrayId) {
        for (_, now) in &mut self.untouched {
            *now = if *now == a {
                b
            } else if *now == b {
                a
            } else {
                *now
            };
        }
    }
}

struct FirstTouch<'a> {
    source: &'a Program,
    affines: &'a Affines,
}

impl Analysis for FirstTouch<'_> {
    type Facts = Touched;

    fn statement(&mut self, stmt: &Stmt, facts: &mut Touched) {
        let touched: BTreeSet<ArrayId> = match stmt {
            Stmt::Swap(..) => return,
            // A host may read and change everything.
            Stmt::Region(_) => return facts.untouched.clear(),
            _ => {
                let block = std::slice::from_ref(stmt);
                reads_of(self.source, block).into_iter().chain(ebbtide_ir::written(block)).collect()
            }
        };
        let Touched { untouched, replaced } = facts;
        untouched.retain(|(first, now)| {
            if touched.contains(now) && replaces(self.source, self.affines, stmt, *now) {
                replaced.insert(*first);
            }
            !touched.contains(now)
        });
    }

    /// What a branch or a loop touches first is not asked.
    fn goes_into(&self, _stmt: &Stmt) -> bool {
        false
    }
}

/// Does the statement write every element of the array and read none?
fn replaces(source: &Program, affines: &Affines, stmt: &Stmt, array: ArrayId) -> bool {
    match stmt {
        Stmt::Fill(to, ..) => *to == array,
        Stmt::Copy { from, to, .. } => *to == array && *from != array,
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
