//! Regions that yield, in a differentiated run.
//!
//! A yielding region is an `undo` region: its abandoned execution leaves nothing behind but its flag. Which execution
//! of a region it is, is counted in the program itself, in an array that slots carry like any other: so what the host
//! did is found again when that execution is run again.

use ebbtide_ir::{After, Again, Push, Region, Stmt};

use crate::error::Error;
use crate::generate::adjoint::AdjointBuilder;
use crate::writer::Writer;
use crate::writer::rename::rename;

impl AdjointBuilder<'_> {
    /// A region is run as it is, whether its iteration is recorded or not; what it needs to be run again is recorded.
    pub(crate) fn forward_region(&mut self, w: &mut Writer, region: &Region) {
        for array in self.plan.region(region).to_vec() {
            w.push(Stmt::Push(Push { array, after: After::Same }));
        }
        w.push(Stmt::Region(region.clone()));
    }

    /// Reversing a region runs it again, with what the host left, records it and reverses that.
    pub(crate) fn reverse_region(&mut self, w: &mut Writer, region: &Region) -> Result<(), Error> {
        let recorded = self.plan.region(region).to_vec();
        if !recorded.is_empty() {
            // They were pushed before the host could change their shapes.
            w.push(Stmt::Host(region.id, Again::Shapes));
        }
        recorded.into_iter().rev().for_each(|array| w.push(Stmt::Pop(array)));
        w.push(Stmt::Host(region.id, Again::Change));
        // Its statements are run and reversed in one go, like those of a whole program.
        let (nested, env) = (std::mem::replace(&mut self.nested, false), self.env.clone());
        w.begin();
        self.forward(w, &region.body)?;
        let recorded = w.end();
        let mut known = self.env.clone();
        rename(w, recorded, &mut known).into_iter().for_each(|stmt| w.push(stmt));
        self.env = known;
        self.reverse(w, &region.body)?;
        (self.nested, self.env) = (nested, env);
        w.push(Stmt::Host(region.id, Again::Undo));
        Ok(())
    }
}
