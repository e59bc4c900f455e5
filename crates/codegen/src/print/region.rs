//! Regions that may yield.

use ebbtide_ir::{ArrayId, Region};

use crate::kernel::segment::Step;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints where a resumed run begins.
    pub fn label(&mut self, region: &Region) {
        let id = region.id.index();
        line!(self, "/* region {id} */");
        if self.yields {
            line!(self, "region{id}: ;");
        }
    }

    /// Prints steps in which what is kept of an array is its place for that.
    pub fn keep(&mut self, array: ArrayId, steps: &[Step]) {
        let t = c_type(self.program.array(array).ty);
        line!(self, "{{ {t} *kept = ({t} *)f->kept[{}];", array.index());
        self.steps(steps);
        line!(self, "}}");
    }

    /// The same, where it is only read.
    pub fn restore(&mut self, array: ArrayId, steps: &[Step]) {
        let t = c_type(self.program.array(array).ty);
        line!(self, "{{ const {t} *kept = (const {t} *)f->kept[{}];", array.index());
        self.steps(steps);
        line!(self, "}}");
    }

    /// Where the flag of a region is set, all threads undo what it did and leave.
    pub fn leave_if_set(&mut self, region: &Region, flag: ArrayId, undo: &[Step]) {
        line!(self, "if (a{}[0]) {{", flag.index());
        self.steps(undo);
        line!(
            self,
            "if (f->thread == 0) {{ f->shared->outcome = 1; f->shared->region = {}; f->shared->reason = a{}[0]; }}",
            region.id.index(),
            flag.index()
        );
        line!(self, "eb_barrier(f); goto leave; }}");
    }
}
