//! Whether the reverse half reads what was there before a statement overwrote it.

use ebbtide_ir::{ArrayId, Combine, Stmt};

use super::Planner;
use crate::analysis::effects::reads_of;
use crate::analysis::extremes::extreme_arrays;

impl Planner<'_> {
    /// Must the element that the program-level write `block[at]` replaces be recorded by itself?
    pub(super) fn replaced_element_is_needed(&self, block: &[Stmt], at: usize) -> bool {
        let Some(Stmt::Store(s) | Stmt::Update(_, s)) = block.get(at) else { return false };
        let harmless = self.plan.needed.is_harmless(s, self.position);
        !harmless && self.records(s.array) && self.old_is_needed(block, at, s.array)
    }

    /// Does the reverse half read what the array held before `block[at]`? Not where the array comes back from the tape whole
    /// before anything reads it.
    pub(super) fn old_is_needed(&self, block: &[Stmt], at: usize, mut array: ArrayId) -> bool {
        if self.plan.needed.everything {
            return true;
        }
        // What was there tells which one won.
        let extreme = |stmt: &Stmt| matches!(stmt, Stmt::Update(Combine::Min | Combine::Max, _));
        let Some(stmt) = block.get(at) else { return true };
        let reads_itself = match stmt {
            Stmt::Par(par) => {
                reads_of(self.source, &par.body).contains(&array)
                    || extreme_arrays(self.activity, &par.body).contains(&array)
            }
            Stmt::Store(_) | Stmt::Update(..) => extreme(stmt),
            Stmt::Fill(..) => false,
            Stmt::Copy { from, .. } => *from == array,
            _ => true,
        };
        if reads_itself {
            return true;
        }
        for stmt in block[..at].iter().rev() {
            match stmt {
                Stmt::Swap(a, b) if *a == array => array = *b,
                Stmt::Swap(a, b) if *b == array => array = *a,
                Stmt::Par(par) if self.plan.par(par).contains(&array) => {
                    return extreme_arrays(self.activity, &par.body).contains(&array);
                }
                Stmt::Par(par) if !reads_of(self.source, &par.body).contains(&array) => {}
                Stmt::Fill(a, ..) if *a == array => return false,
                // Their reversal reads no elements of the program's own arrays.
                Stmt::Let(_) | Stmt::Swap(..) | Stmt::Fill(..) | Stmt::Store(_) => {}
                Stmt::Update(..) if !extreme(stmt) => {}
                _ => return true,
            }
        }
        true
    }
}
