//! Regions that may yield.

use ebbtide_ir::{Block, Region, Stmt, Undone, walk_program_level};

use crate::c_types::c_type;
use crate::segment::{Touched, Whole, address};
use crate::unit::{Text, line};

impl Text<'_> {
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

/// The regions of a block.
pub(crate) fn regions(block: &Block) -> Vec<&Region> {
    let mut regions = Vec::new();
    walk_program_level(block, &mut |stmt| {
        if let Stmt::Region(region) = stmt {
            regions.push(region);
        }
    });
    regions
}
