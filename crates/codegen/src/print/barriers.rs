//! Barriers, as text; and how threads share the steps of a segment, on which it depends where they are.

use ebbtide_ir::{Block, Par};

use crate::analysis::grid_form::grid_manner;
use crate::analysis::names::reductions;
use crate::kernel::machine::Family;
use crate::kernel::segment::{Manner, MappingId, Steps};
use crate::kernel::{segment, show};
use crate::print::emitter::{Emitter, line};
use crate::print::par::proved;
use crate::transform::segment::{Afterwards, Sharing};

#[cfg(test)]
mod tests;

impl Emitter<'_> {
    /// The steps of a segment, with barriers where its threads must meet.
    pub fn steps_of<'b>(&self, block: &'b Block) -> Steps<'b> {
        let leaves = match self.family {
            Family::C => Afterwards::Meet,
            Family::Cuda => Afterwards::Continue,
        };
        let sharing = Sharing {
            program: self.program,
            facts: self.facts,
            waiting: &self.waiting(block),
            packed: &self.packed,
            leaves,
            mapping: &|par| self.mapping(par),
            beside_sums: &|mapping| self.beside_sums(mapping),
            leaves_beside: &|par| self.leaves_beside(par),
            manner: &|par| self.manner(par),
            tiles: self.family == Family::Cuda,
            interchanged: &|l| self.interchange(l).is_some(),
        };
        let steps = sharing.segment(block);
        debug_assert_eq!(segment::verify::verify(&steps), Ok(()));
        if show::is_wanted() {
            eprintln!("// a segment:\n{}", segment::show::show(self.program, &steps));
        }
        steps
    }

    /// How the iterations of a parallel loop are dealt out.
    fn manner(&self, par: &Par) -> Manner {
        match self.family {
            Family::Cuda => grid_manner(self.program, self.facts, par),
            Family::C if reductions(self.facts, par).is_empty() => Manner::Shares,
            Family::C => Manner::Leaves,
        }
    }

    /// All threads meet here.
    pub fn barrier(&mut self) {
        line!(self, "if (eb_barrier(f)) goto leave;");
    }

    /// All threads meet here, unless blocks keep to their leaves.
    pub fn barrier_unless_by_leaves(&mut self, domain: MappingId) {
        let by_leaves = self.is_by_leaves(domain);
        line!(self, "if ({by_leaves}) __syncthreads(); else if (eb_barrier(f)) goto leave;");
    }

    /// All threads meet here, behind a parallel loop, unless it is proved that none of them can have met a fault: that is the same
    /// for all. A loop that the host stopped may have been left half-way all the same: that is learnt at the next barrier, and
    /// until then every index is checked or proved as ever.
    pub fn barrier_unless_proved(&mut self, par: &Par) {
        match self.family {
            Family::Cuda => line!(self, "if (!proved && eb_barrier(f)) goto leave;"),
            // One thread looks at no proofs: what a barrier does costs it less.
            Family::C => {
                let proof = self.prover().proof(par);
                let safe = proof.map_or("0".to_string(), |proof| proved(&proof.tests, &[]));
                line!(self, "if ((f->threads == 1 || !({safe})) && eb_barrier(f)) goto leave;");
            }
        }
    }
}
