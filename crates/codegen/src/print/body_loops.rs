//! Loops inside the iterations of parallel loops.

use crate::kernel::name::Name;
use crate::kernel::stmt::{Body, Loop, LoopKind, Partly};
use crate::kernel::tiles::at_a_time;
use crate::print::emitter::{Emitter, line};
use crate::print::statements::{Context, poll};

impl Emitter<'_> {
    /// Prints a loop. One that polls looks now and then whether the host wants the launch to end, between runs of iterations that
    /// know nothing of it.
    pub fn loop_in_place(&mut self, cx: Context, l: &Loop) {
        let (number, looks, cx) = (l.number, poll(cx), Context { tiles: false, ..cx });
        match &l.kind {
            LoopKind::Counted { variable: v, from, to } => {
                self.running.push(*v);
                let [from, to] = [from, to].map(|e| self.expr(e, cx.pace));
                let last = format!("end{number} - 1");
                line!(self, "{{ const i64 end{number} = {to};");
                if let Some(partly) = &l.partly {
                    self.partly_loop(cx, l, partly, (*v, &from));
                } else if !l.sums.is_empty() {
                    let look = if l.polls { looks.as_str() } else { "" };
                    self.summing_loop(cx, l, (*v, &from), look);
                    line!(self, "}}");
                // A loop that can be left in the middle is left by one `break`.
                } else if l.polls && l.until.is_none() {
                    self.end_of_loop(cx, l, &from, (*v, &from), l.ends.as_ref().map(|ends| &ends.first));
                    line!(self, "for (i64 {v} = {from}; {v} < end{number};) {{");
                    line!(self, "const i64 pause{number} = eb_until({v}, end{number});");
                    self.whole_tiles(cx, l, (*v, &format!("pause{number}")), |text, cx| {
                        text.body(cx, &l.body)
                    });
                    line!(self, "for (; {v} < pause{number}; {v}++) {{");
                    self.body(cx, &l.body);
                    line!(self, "}} if ({v} < end{number}) {{ {looks} }} }}");
                    self.end_of_loop(cx, l, &from, (*v, &last), l.ends.as_ref().map(|ends| &ends.last));
                    line!(self, "}}");
                } else {
                    self.end_of_loop(cx, l, &from, (*v, &from), l.ends.as_ref().map(|ends| &ends.first));
                    match at_a_time(l).is_none() {
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
                    line!(self, "}}");
                    self.end_of_loop(cx, l, &from, (*v, &last), l.ends.as_ref().map(|ends| &ends.last));
                    line!(self, "}}");
                }
                self.running.pop();
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

    /// Prints a loop of which lanes have different iterations: runs that all of them have and runs that some have, whose bounds
    /// are asked for again when one has ended.
    fn partly_loop(&mut self, cx: Context, l: &Loop, partly: &Partly, (v, from): (Name, &str)) {
        let (number, looks) = (l.number, poll(cx));
        let [first, last] = [&partly.from, &partly.to].map(|e| self.expr(e, cx.pace));
        line!(self, "const i64 begin{number} = {from};");
        line!(self, "const i64 last{number} = {last};");
        line!(self, "for (i64 {v} = {first}; {v} < last{number};) {{");
        line!(self, "const int all{number} = {v} >= begin{number} && {v} < end{number};");
        line!(
            self,
            "const i64 stop{number} = all{number} ? end{number} : {v} < begin{number} ? eb_min(begin{number}, last{number}) : last{number};"
        );
        let until = if l.polls { format!("eb_until({v}, stop{number})") } else { format!("stop{number}") };
        line!(self, "const i64 pause{number} = {until};");
        let some = Loop { body: partly.body.clone(), partly: None, ..l.clone() };
        for (case, l) in [("if", l), ("else", &some)] {
            line!(self, "{case}{} {{", if case == "if" { format!(" (all{number})") } else { String::new() });
            self.whole_tiles(cx, l, (v, &format!("pause{number}")), |text, cx| text.body(cx, &l.body));
            line!(self, "for (; {v} < pause{number}; {v}++) {{");
            self.body(cx, &l.body);
            line!(self, "}} }}");
        }
        if l.polls {
            line!(self, "if ({v} < last{number}) {{ {looks} }}");
        }
        line!(self, "}} }}");
    }

    /// Prints what is done before the first iteration of a loop or behind the last one, where it has any.
    fn end_of_loop(&mut self, cx: Context, l: &Loop, from: &str, (v, at): (Name, &str), body: Option<&Body>) {
        if let Some(body) = body.filter(|body| !body.is_empty()) {
            line!(self, "if ({from} < end{}) {{ const i64 {v} = {at};", l.number);
            self.body(cx, body);
            line!(self, "}}");
        }
    }

    fn leave(&mut self, cx: Context, l: &Loop) {
        if let Some(until) = &l.until {
            let until = self.expr(until, cx.pace);
            line!(self, "if ({until}) break;");
        }
    }
}
