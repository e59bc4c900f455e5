//! Loops inside the iterations of parallel loops.

use ebbtide_ir::{Block, Loop, LoopKind, Op, Stmt, ValueId};

use crate::analysis::loop_invariants::loop_invariants;
use crate::kernel::machine::Family;
use crate::print::body::{Body, Team};
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints a loop. An outermost one looks now and then whether the host wants the launch to end, between runs of passes
    /// that know nothing of it; on a CPU, where a look is one load, before the first ones too.
    pub fn inner_loop(&mut self, body: &Body, l: &Loop, mask: Option<&str>) {
        let (number, outermost) = (self.fresh(), self.inner_loops == 0);
        self.inner_loops += 1;
        // A team leaves together: some would wait for others.
        let stopped = match body.team {
            Team::Alone => "eb_stopped(f)",
            Team::Lanes => "__any_sync(team, eb_stopped(f))",
        };
        let looks = format!("if ({stopped}) goto exit{};", body.exit);
        match &l.kind {
            LoopKind::For { var, from, to } => {
                let of_data = [*from, *to].iter().any(|v| !matches!(self.program.op(*v), Op::Literal(_)));
                if outermost && of_data && self.family == Family::C {
                    line!(self, "{looks}");
                }
                let [from, to] = [*from, *to].map(|v| self.checked_bound(body, v, mask));
                let v = format!("v{}", var.index());
                line!(self, "{{ const i64 end{number} = {to};");
                let before = match (body.interior(), self.family) {
                    (Some(interior), Family::C) => loop_invariants(self.program, interior, l),
                    _ => Block::new(),
                };
                self.body(body, &before, mask);
                let moved = std::mem::take(&mut self.moved);
                self.moved = before.iter().filter_map(defined).chain(moved.iter().copied()).collect();
                if !l.sums.is_empty() {
                    let look = if outermost { looks.as_str() } else { "" };
                    self.summing_loop(body, l, (*var, &from), (number, look), mask);
                    line!(self, "}}");
                // A loop that can be left in the middle is left by one `break`.
                } else if outermost && l.until.is_none() {
                    line!(self, "for (i64 {v} = {from}; {v} < end{number};) {{");
                    line!(self, "const i64 pause{number} = eb_until({v}, end{number});");
                    line!(self, "for (; {v} < pause{number}; {v}++) {{");
                    self.body(body, &l.body, mask);
                    line!(self, "}} if ({v} < end{number}) {{ {looks} }} }} }}");
                } else {
                    line!(self, "for (i64 {v} = {from}; {v} < end{number}; {v}++) {{");
                    self.body(body, &l.body, mask);
                    self.leave(body, l);
                    line!(self, "}} }}");
                }
                self.moved = moved;
            }
            LoopKind::While { head, condition } => {
                line!(self, "for (u32 pass{number} = 1;; pass{number}++) {{ {{");
                self.body(body, head, mask);
                line!(self, "if (!{}) break; }}", self.known(body, *condition));
                line!(self, "if (pass{number} % EB_ITERATIONS == 0) {{ {looks} }} {{");
                self.body(body, &l.body, mask);
                self.leave(body, l);
                line!(self, "}} }}");
            }
            LoopKind::Forever => {
                line!(self, "for (u32 pass{number} = 1;; pass{number}++) {{");
                line!(self, "if (pass{number} % EB_ITERATIONS == 0) {{ {looks} }}");
                self.body(body, &l.body, mask);
                self.leave(body, l);
                line!(self, "}}");
            }
        }
        self.inner_loops -= 1;
    }

    fn leave(&mut self, body: &Body, l: &Loop) {
        if let Some(until) = l.until {
            line!(self, "if ({}) break;", self.known(body, until));
        }
    }

    /// A bound, after the look whether it is a number.
    fn checked_bound(&mut self, body: &Body, v: ValueId, mask: Option<&str>) -> String {
        let text = self.bound(body, v);
        if self.may_overflow(v) {
            // Lanes that are not here may have no number.
            self.failed |= mask.is_some();
            let site = self.program.value(v).site.clone();
            let access = self.access(None, &site);
            line!(
                self,
                "if (__builtin_expect({text} == INT64_MIN, 0)) {{ eb_fault(f, EB_OVERFLOW, {access}, 0, 0, 0); goto exit{}; }}",
                body.exit
            );
        }
        text
    }

    /// A bound, which the interior form may have left unprinted.
    fn bound(&self, body: &Body, v: ValueId) -> String {
        match body.interior().and_then(|interior| self.linear_here(interior, v)) {
            Some(sum) if sum.coefficient == 0 => sum.base.to_string(),
            Some(sum) => {
                let j = self.innermost.map_or(String::new(), |j| self.value(j));
                format!("(INT64_C({}) * {j} + {})", sum.coefficient, sum.base)
            }
            None => self.known(body, v),
        }
    }
}

/// The value that a statement computes.
fn defined(stmt: &Stmt) -> Option<ValueId> {
    if let Stmt::Let(v) = stmt { Some(*v) } else { None }
}
