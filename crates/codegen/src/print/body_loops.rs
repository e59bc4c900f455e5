//! Loops inside the iterations of parallel loops.

use crate::kernel::stmt::{Loop, LoopKind};
use crate::kernel::tiles::tiles;
use crate::print::emitter::{Emitter, line};
use crate::print::statements::{Context, poll};

impl Emitter<'_> {
    /// Prints a loop. One that polls looks now and then whether the host wants the launch to end, between runs of iterations that
    /// know nothing of it.
    pub fn loop_in_place(&mut self, cx: Context, l: &Loop) {
        let (number, looks, cx) = (l.number, poll(cx), Context { tiles: false, ..cx });
        match &l.kind {
            LoopKind::Counted { variable: v, from, to } => {
                let [from, to] = [from, to].map(|e| self.expr(e, cx.pace));
                line!(self, "{{ const i64 end{number} = {to};");
                if !l.sums.is_empty() {
                    let look = if l.polls { looks.as_str() } else { "" };
                    self.summing_loop(cx, l, (*v, &from), look);
                    line!(self, "}}");
                // A loop that can be left in the middle is left by one `break`.
                } else if l.polls && l.until.is_none() {
                    line!(self, "for (i64 {v} = {from}; {v} < end{number};) {{");
                    line!(self, "const i64 pause{number} = eb_until({v}, end{number});");
                    self.whole_tiles(cx, l, (*v, &format!("pause{number}")), |text, cx| {
                        text.body(cx, &l.body)
                    });
                    line!(self, "for (; {v} < pause{number}; {v}++) {{");
                    self.body(cx, &l.body);
                    line!(self, "}} if ({v} < end{number}) {{ {looks} }} }} }}");
                } else {
                    match tiles(l).is_empty() {
                        true => line!(self, "for (i64 {v} = {from}; {v} < end{number}; {v}++) {{"),
                        false => {
                            line!(self, "i64 {v} = {from};");
                            self.whole_tiles(cx, l, (*v, &format!("end{number}")), |text, cx| {
                                text.body(cx, &l.body)
                            });
                            line!(self, "for (; {v} < end{number}; {v}++) {{");
                        }
                    }
                    self.body(cx, &l.body);
                    self.leave(cx, l);
                    line!(self, "}} }}");
                }
            }
            LoopKind::While { head, condition } => {
                line!(self, "for (u32 pass{number} = 1;; pass{number}++) {{ {{");
                self.body(cx, head);
                let condition = self.expr(condition, cx.pace);
                line!(self, "if (!{condition}) break; }}");
                line!(self, "if (pass{number} % EB_ITERATIONS == 0) {{ {looks} }} {{");
                self.body(cx, &l.body);
                self.leave(cx, l);
                line!(self, "}} }}");
            }
            LoopKind::Forever => {
                line!(self, "for (u32 pass{number} = 1;; pass{number}++) {{");
                line!(self, "if (pass{number} % EB_ITERATIONS == 0) {{ {looks} }}");
                self.body(cx, &l.body);
                self.leave(cx, l);
                line!(self, "}}");
            }
        }
    }

    fn leave(&mut self, cx: Context, l: &Loop) {
        if let Some(until) = &l.until {
            let until = self.expr(until, cx.pace);
            line!(self, "if ({until}) break;");
        }
    }
}
