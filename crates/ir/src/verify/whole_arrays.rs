//! Statements at program level that take arrays as wholes.

use super::Verifier;
use crate::syntax::*;

impl Verifier<'_> {
    pub(super) fn swap(&mut self, a: ArrayId, b: ArrayId) {
        let p = self.program;
        self.at_program_level("`swap`", &None);
        self.write(a, &None);
        self.write(b, &None);
        let (x, y) = (p.array(a), p.array(b));
        if (x.ty, x.rank) != (y.ty, y.rank) {
            self.flaw("2", &None, format!("`swap({}, {})`: type and rank differ", x.name, y.name));
        }
    }

    pub(super) fn fill(&mut self, a: ArrayId, v: ValueId) {
        self.at_program_level("`fill`", &None);
        self.write(a, &None);
        self.is(v, self.program.array(a).ty, "the value of `fill`", &None);
    }

    pub(super) fn copy(&mut self, from: ArrayId, to: ArrayId) {
        let p = self.program;
        self.at_program_level("`copy`", &None);
        self.write(to, &None);
        self.read(from, &None);
        let (x, y) = (p.array(from), p.array(to));
        if (x.ty, x.rank) != (y.ty, y.rank) {
            self.flaw("2", &None, format!("`copy({}, {})`: type and rank differ", x.name, y.name));
        }
    }

    pub(super) fn library(&mut self, stmt: &Stmt, call: &LibraryCall) {
        let p = self.program;
        self.at_program_level(&format!("`{}`", call.name(p)), &call.site);
        call.reads.iter().for_each(|a| self.read(*a, &call.site));
        call.writes.iter().for_each(|a| self.write(*a, &call.site));
        if let Some(message) = call.flaw(p) {
            self.flaw("11", &call.site, message);
        }
        stmt.uses().into_iter().for_each(|v| self.used(v, &call.site));
        if let LibraryOp::Custom(id) = call.op
            && p.operations.get(id.index()).is_none()
        {
            self.flaw("11", &call.site, format!("there is no operation {}", id.index()));
        }
    }

    /// The forward half of a reversed loop.
    pub(super) fn forward(&mut self, f: &Forward) {
        self.at_program_level("a sweep", &None);
        f.carried.iter().chain(&f.kept).for_each(|a| self.read(*a, &None));
        if let Length::Known(from, to) = f.length {
            self.is(from, Type::Index, "a bound", &None);
            self.is(to, Type::Index, "a bound", &None);
        }
        // The driver sets the bounds of each piece; the reverse half uses them too.
        self.defined[f.from.index()] = true;
        self.defined[f.to.index()] = true;
        // One of the two runs: both may declare the same temporaries.
        let temps = self.temps.clone();
        self.block(&f.advance);
        let declared = std::mem::replace(&mut self.temps, temps);
        self.block(&f.record);
        self.temps.extend(declared);
    }
}
