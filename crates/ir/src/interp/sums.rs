//! Sums in the order of law 8: by lanes, leaf by leaf.

use super::evaluate::{Bits, combine, neutral};
use super::{Flow, Machine, Reduction};
use crate::Fault;
use crate::analysis::leaf::{LANES, Leaves};
use crate::syntax::{Combine, Loop, Type, ValueId};

impl Reduction {
    pub(super) fn new(how: Combine, ty: Type) -> Reduction {
        let start = neutral(how, ty);
        Reduction { how, ty, lanes: [start; LANES], total: start, element: None }
    }

    /// Combines the lanes in a tree, and that with the leaves before.
    pub(super) fn end_leaf(&mut self) {
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                self.lanes[lane] = combine(self.how, self.ty, self.lanes[lane], self.lanes[lane + width]);
            }
            width /= 2;
        }
        self.total = combine(self.how, self.ty, self.total, self.lanes[0]);
        self.lanes = [neutral(self.how, self.ty); LANES];
    }
}

impl<'p> Machine<'p, '_> {
    /// Runs a loop that adds sums to locals.
    pub(super) fn summed(&mut self, l: &'p Loop, var: ValueId, [from, to]: [i64; 2]) -> Result<Flow, Fault> {
        let count = to.checked_sub(from).unwrap_or(i64::MAX);
        let size = Leaves::of(&[count]).size;
        let before: Vec<Bits> = l.sums.iter().map(|local| self.scalars.locals[local.index()]).collect();
        let mut sums: Vec<Reduction> = l
            .sums
            .iter()
            .map(|local| Reduction::new(Combine::Add, self.program.locals[local.index()].ty))
            .collect();
        self.iterations.push(0);
        for place in 0..count {
            if place > 0 && place % size == 0 {
                sums.iter_mut().for_each(Reduction::end_leaf);
            }
            if let Some(iteration) = self.iterations.last_mut() {
                *iteration = place as u64;
            }
            self.scalars.values[var.index()] = (from + place) as Bits;
            for (local, sum) in l.sums.iter().zip(&sums) {
                self.scalars.locals[local.index()] = neutral(sum.how, sum.ty);
            }
            self.block(&l.body)?;
            let lane = place as usize % LANES;
            for (local, sum) in l.sums.iter().zip(&mut sums) {
                let term = self.scalars.locals[local.index()];
                sum.lanes[lane] = combine(sum.how, sum.ty, sum.lanes[lane], term);
            }
        }
        self.iterations.pop();
        for ((local, mut sum), before) in l.sums.iter().zip(sums).zip(before) {
            sum.end_leaf();
            self.scalars.locals[local.index()] = combine(sum.how, sum.ty, before, sum.total);
        }
        Ok(Flow::Next)
    }
}
