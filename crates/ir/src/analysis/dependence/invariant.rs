//! Which values are the same in all iterations of a parallel loop, as the loop is written.
//!
//! The order of a sum hangs on this (law 8), so it is a matter of the program's text alone: a cleverer proof may accept
//! more loops, and may not change a bit of those that were accepted before.

use std::collections::BTreeSet;

use crate::analysis::affine::Affines;
use crate::syntax::*;

/// What comes to life inside a parallel loop.
#[derive(Default)]
pub struct Inside {
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

impl Inside {
    pub fn of(par: &Par) -> Inside {
        let mut inside =
            Inside { values: par.ranges.iter().map(|r| r.var).collect(), locals: BTreeSet::new() };
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => drop(inside.values.insert(*v)),
            Stmt::Declare(local, _) => drop(inside.locals.insert(*local)),
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.values.insert(*var)),
            _ => {}
        });
        inside
    }

    /// Is the value made by pure operations of what is known when the loop begins?
    pub fn is_invariant(&self, program: &Program, affines: &Affines, value: ValueId) -> bool {
        // Operands stand before their uses, so a work list ends.
        let mut work = vec![value];
        while let Some(v) = work.pop() {
            if !self.values.contains(&v) {
                continue;
            }
            match program.op(v) {
                // What it is made of decides: that the same value is also made elsewhere says nothing, since it may be
                // made of this loop's variable there too.
                op if op.is_pure() && *op != Op::LoopVar => work.extend(op.operands()),
                Op::Get(local) if !self.locals.contains(local) => {}
                _ if !self.values.contains(&affines.representative(v)) => {}
                _ => return false,
            }
        }
        true
    }
}
