//! Loops around parallel loops.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, LoopKind, Stmt, ValueId, walk_program_level};

use crate::analysis::exact::may_overflow;
use crate::kernel::machine::Family;
use crate::kernel::segment::TimeLoop;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Can a value of program level be no number? Nothing is proved there.
    pub fn may_overflow(&self, v: ValueId) -> bool {
        may_overflow(self.program, &BTreeSet::new(), v)
    }

    /// Prints a fault where a bound of a loop at program level is no number; all threads find the same.
    pub fn check_bounds(&mut self, bounds: &[ValueId]) {
        for v in bounds {
            if self.may_overflow(*v) {
                let site = self.program.value(*v).site.clone();
                let access = self.access(None, &site);
                line!(
                    self,
                    "if (__builtin_expect({} == INT64_MIN, 0)) {{ eb_fault(f, EB_OVERFLOW, {access}, 0, 0, 0); {} }}",
                    self.value(*v),
                    self.end()
                );
            }
        }
    }

    /// Prints a loop whose iterations all threads run one after the other.
    pub fn program_loop(&mut self, of: &TimeLoop) {
        let l = of.source;
        let counter = format!("pass{}", l.id.index());
        if let LoopKind::For { from, to, .. } = l.kind {
            self.check_bounds(&[from, to]);
        }
        line!(self, "{counter} = 0;");
        match &l.kind {
            LoopKind::For { var, from, to } => {
                let (mut from, mut to) = (self.value(*from), self.value(*to));
                if self.yields {
                    // A resumed run goes on with the bounds that the loop was entered with.
                    let id = l.id.index();
                    line!(self, "from{id} = {from}; to{id} = {to};");
                    (from, to) = (format!("from{id}"), format!("to{id}"));
                }
                line!(
                    self,
                    "for (; {from} + {counter} < {to}; {counter}++) {{ v{} = {from} + {counter};",
                    var.index()
                );
            }
            LoopKind::While { condition, .. } => {
                line!(self, "for (;; {counter}++) {{");
                self.steps(&of.head);
                line!(self, "if (!{}) break;", self.value(*condition));
            }
            LoopKind::Forever => line!(self, "for (;; {counter}++) {{"),
        }
        if self.outer_loops == 0 {
            match self.family {
                Family::C => line!(self, "if (f->thread == 0) eb_tell(f, {counter});"),
                // The host is told where the first thread looks what it wants.
                Family::Cuda => line!(self, "f->pass = {counter};"),
            }
        }
        self.look(of, &counter);
        self.outer_loops += 1;
        self.steps(&of.body);
        self.outer_loops -= 1;
        if let Some(until) = l.until {
            line!(self, "if ({}) {{ {counter}++; break; }}", self.value(until));
        }
        line!(self, "}}");
        if self.outer_loops == 0 {
            self.tell(&counter);
        }
    }

    /// Prints the look whether the host wants an end, in each iteration.
    fn look(&mut self, of: &TimeLoop, counter: &str) {
        if let Some(n) = self.alone {
            return line!(self, "if (eb_look_alone(f, &looked{n})) goto together{n};");
        }
        // Blocks that meet in every iteration look there.
        let only = match self.family == Family::Cuda && of.meets() {
            true => "if (EB_NEAR) ",
            false => "",
        };
        match self.family == Family::Cuda && self.outer_loops == 0 && !has_loops(&of.source.body) {
            // It counts its iterations itself.
            true => line!(self, "{only}if (eb_pause_after(f, (u32){counter} + 1)) goto leave;"),
            false => line!(self, "{only}if (eb_pause(f)) goto leave;"),
        }
    }

    /// Tells the host how many iterations of an outermost loop are finished.
    pub fn tell(&mut self, passes: &str) {
        match self.family {
            Family::C => line!(self, "if (f->thread == 0) eb_tell(f, {passes});"),
            Family::Cuda => line!(self, "f->pass = {passes}; if (eb_first()) eb_tell(f);"),
        }
    }
}

/// Are there loops around parallel ones in it?
fn has_loops(block: &Block) -> bool {
    let mut found = false;
    walk_program_level(block, &mut |stmt| found |= matches!(stmt, Stmt::Loop(_)));
    found
}
