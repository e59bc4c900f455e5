//! Regions that may yield.

use ebbtide_ir::{Region, Undone};

use crate::print::c_types::c_type;
use crate::print::elements::{Touched, Whole, address};
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints a region: what it may undo is kept, and where its flag is set all threads leave.
    pub fn region(&mut self, region: &Region) {
        let id = region.id.index();
        line!(self, "/* region {id} */");
        if self.yields {
            line!(self, "region{id}: ;");
        }
        let undone = Undone::by(region);
        for a in &undone.arrays {
            let t = c_type(self.program.array(*a).ty);
            line!(self, "{{ {t} *kept = ({t} *)f->kept[{}];", a.index());
            self.elements(*a, Touched::Read, Whole::kept(*a));
            line!(self, "}}");
        }
        for l in &undone.locals {
            line!(self, "kept_l{0} = l{0};", l.index());
        }
        self.statements(&region.body);
        if let Some(flag) = region.flag {
            self.before_read(flag);
            line!(self, "if (a{}[0]) {{", flag.index());
            let (pending, meetings) = (self.pending.clone(), self.meetings);
            for a in &undone.arrays {
                let t = c_type(self.program.array(*a).ty);
                line!(self, "{{ const {t} *kept = (const {t} *)f->kept[{}];", a.index());
                let back = Whole::Copy { to: address(*a), from: "kept".to_string() };
                self.elements(*a, Touched::Written, back);
                line!(self, "}}");
            }
            for l in &undone.locals {
                line!(self, "l{0} = kept_l{0};", l.index());
            }
            line!(
                self,
                "if (f->thread == 0) {{ f->shared->outcome = 1; f->shared->region = {id}; f->shared->reason = a{}[0]; }}",
                flag.index()
            );
            line!(self, "eb_barrier(f); goto leave; }}");
            (self.pending, self.meetings) = (pending, meetings);
            self.after_read(flag);
        }
    }
}
