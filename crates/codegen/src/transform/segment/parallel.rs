//! Parallel loops of a segment: where threads meet before one and behind it, how its iterations are dealt out, and who comes to its sums.

use std::collections::BTreeSet;

use ebbtide_ir::{Op, Par, Stmt, Store, walk};

use super::{Afterwards, Placing, Sharing};
use crate::analysis::barriers::{Meets, Touched, touched_by, touches};
use crate::analysis::bounds_proof::Prover;
use crate::analysis::names::{always_combines, reductions, values_inside};
use crate::analysis::thread_ownership::has_owners;
use crate::kernel::segment::{Barrier, By, Manner, ProductId, Step};

impl<'p> Placing<'_, '_, 'p> {
    /// Do all threads read a sum of the loop behind it, before anything that they share work for?
    pub(super) fn reads_sums(&self, par: &Par, behind: &[Stmt]) -> bool {
        let program = self.sharing.program;
        let sums = reductions(self.sharing.facts, par);
        let near = behind.iter().take_while(|stmt| {
            matches!(
                stmt,
                Stmt::Let(_) | Stmt::Store(_) | Stmt::Update(..) | Stmt::Declare(..) | Stmt::Set(..)
            )
        });
        let mut loads = near.filter_map(|stmt| match stmt {
            Stmt::Let(v) => Some(program.op(*v)),
            _ => None,
        });
        loads.any(|op| matches!(op, Op::Load(array, _) if sums.iter().any(|(_, s)| s.array == *array)))
    }

    pub(super) fn par(&mut self, par: &'p Par) {
        let steps = self.inside(|inner| inner.parallel(par));
        self.steps.push(Step::Par(par, steps));
    }

    /// May any of these touches meet another one?
    fn conflict(&self, touched: &[Touched]) -> bool {
        touched.iter().any(|(array, touch, by)| self.pending.conflicts(*array, *touch, *by))
    }

    /// The product to whose blocks a loop can keep, so that none has to wait for another one; and what it touches then.
    fn product_of(&self, par: &Par) -> Option<(ProductId, Vec<Touched>)> {
        let Sharing { program, facts, .. } = *self.sharing;
        let mut long = false;
        walk(&par.body, &mut |stmt| long |= matches!(stmt, Stmt::Loop(_)));
        // Blocks without a tile would be idle for long.
        if long || par.ranges.len() != 2 || !has_owners(facts, par) {
            return None;
        }
        let touched = touches(program, &facts.affines, par);
        let products: BTreeSet<ProductId> =
            touched.keys().flat_map(|array| self.pending.products(*array)).collect();
        let by_block = products.into_iter().map(|id| (id, touched_by(program, facts, par, By::Block(id))));
        by_block.into_iter().find(|(_, touched)| !self.conflict(touched))
    }

    /// Can all threads come to the sums of a loop for themselves? Thread 0 says what the elements held, so nobody else may be about
    /// them.
    fn sums_are_for_all(&self, par: &Par) -> bool {
        let sums = reductions(self.sharing.facts, par);
        let one = |s: &Store| {
            let alone = sums.iter().filter(|(_, other)| other.array == s.array).count() == 1;
            let of_first =
                self.is_of_first(s.array) && self.pending.of(s.array).all(|(_, by)| by == By::First);
            alone && of_first && always_combines(par, s)
        };
        self.sums_are_read && sums.iter().all(|(_, s)| one(s))
    }

    fn parallel(&mut self, par: &'p Par) {
        let Sharing { program, facts, .. } = *self.sharing;
        let mut manner = (self.sharing.manner)(par);
        let owner = match manner {
            Manner::Leaves => (self.sharing.leaves_beside)(par).map_or(By::Anyone, By::Leaf),
            _ => (self.sharing.mapping)(par).map_or(By::Anyone, By::Owner),
        };
        let mut touched = touched_by(program, facts, par, owner);
        // Terms of sums go elsewhere: all threads meet before they come to their elements.
        let sums = reductions(facts, par);
        touched.retain(|(array, ..)| !sums.iter().any(|(_, s)| s.array == *array));
        let prover = Prover { program, facts, inside: &values_inside(par) };
        let proved = prover.proof(par).is_some();
        let any = manner == Manner::Teams && !self.pending.is_empty();
        let meets =
            touched.iter().map(|touched| self.pending.meets(*touched, self.sharing.beside_sums)).max();
        if let Some(Meets::InBlock(domain)) = meets.filter(|_| !any && !self.pending.leaves) {
            self.steps.push(Step::Barrier(Barrier::UnlessByLeaves(domain)));
        } else if any || self.pending.leaves || meets.is_some_and(|meets| meets != Meets::Nowhere) {
            match self.product_of(par).filter(|_| proved && manner == Manner::Shares && !self.pending.leaves)
            {
                Some((product, by_block)) => (manner, touched) = (Manner::Tiles(product), by_block),
                None => self.meet(),
            }
        }
        let for_all = self.sums_are_for_all(par);
        self.steps.push(Step::Iterations(par, manner));
        if matches!(manner, Manner::Shares | Manner::Tiles(_)) && proved {
            self.steps.push(Step::Barrier(Barrier::UnlessProved));
            touched.into_iter().for_each(|(array, touch, by)| self.pending.note(array, touch, by));
        } else {
            self.meet();
        }
        if sums.is_empty() {
            return;
        }
        if for_all {
            self.steps.push(Step::CombineForAll(par));
            for (number, (_, s)) in sums.iter().enumerate() {
                self.wrote(s.array, By::First);
                self.known.insert(s.array, (par, number));
            }
            return;
        }
        self.steps.push(Step::CombineLeaves(par));
        // A fault ends the run here; or all threads wait for the sums.
        if self.sharing.leaves == Afterwards::Meet || self.sums_are_read {
            return self.meet();
        }
        self.pending.leaves = true;
        sums.iter().for_each(|(_, s)| self.wrote(s.array, By::First));
    }
}
