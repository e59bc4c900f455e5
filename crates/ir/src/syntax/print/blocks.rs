//! Statements with blocks in the printed form: loops, regions, calls, and the halves of a reversed loop.

use super::Printer;
use super::names::{path, quoted};
use crate::syntax::error::Touched;
use crate::syntax::op::Combine;
use crate::syntax::program::*;

impl Printer<'_> {
    pub(super) fn parallel(&mut self, par: &Par) {
        for requirement in &par.requires {
            let what = match requirement.asked {
                Asked::OnEntry => "requires",
                Asked::Before => "holds",
            };
            let [first, second] = [0, 1].map(|k| touched(requirement.accesses[k].0));
            let (condition, array) = (self.expr(requirement.condition), self.names.array(requirement.array));
            let text = format!("#[{what}({condition}, {array}, {first}, {second})]");
            self.line(&text);
        }
        // What was asked, or stands in a program that autodiff made, is proved.
        let usual = match self.program.driven || !par.requires.is_empty() {
            true => Safety::Proved,
            false => Safety::Unknown,
        };
        match par.safety {
            safety if safety == usual => {}
            Safety::Proved => self.line("#[proved]"),
            Safety::Unknown => self.line("#[unproved]"),
        }
        let vars: Vec<&str> = par.ranges.iter().map(|r| self.names.value(r.var)).collect();
        let ranges: Vec<String> =
            par.ranges.iter().map(|r| format!("{}..{}", self.expr(r.from), self.expr(r.to))).collect();
        let vars = if vars.len() == 1 { vars.concat() } else { format!("({})", vars.join(", ")) };
        let relaxed = if par.ordering == Ordering::Relaxed { "#[relaxed] " } else { "" };
        let text = format!("{relaxed}for {vars} in par({}) {{", ranges.join(", "));
        self.line(&text);
        self.nested(&par.body);
        self.line("}");
    }

    pub(super) fn region(&mut self, region: &Region) {
        let label = &self.program.labels[region.label.index()];
        let mut text = match label.family == Label::NUMBERS && label.variant.parse::<i32>().is_ok() {
            true => format!("#[checkpoint({}", label.variant),
            false => format!("#[checkpoint({}::{}", path(&label.family), quoted_variant(&label.variant)),
        };
        if let Some(flag) = region.flag {
            text += &format!(", yield_on = {}", self.names.array(flag));
        }
        match &region.undo {
            Undo::Nothing => {}
            Undo::Everything => text += ", undo",
            Undo::Arrays(arrays) => text += &format!(", undo = [{}]", self.names.list(arrays)),
        }
        // Regions of the source may stand in it more than once.
        if self.program.driven {
            text += &format!(", region = {}", region.id.0);
        }
        text += ")] {";
        self.line(&text);
        self.nested(&region.body);
        self.line("}");
    }

    pub(super) fn call(&mut self, call: &Call) {
        let mut text = format!("/* {}", path(&call.name));
        if let Some(ruled) = &call.ruled {
            let arguments = self.bound(&ruled.arguments);
            text += &format!("({})", arguments.join(", "));
            for (what, rule) in [("adjoint", ruled.rules.adjoint), ("tangent", ruled.rules.tangent)] {
                if let Some(rule) = rule {
                    text += &format!(", {what} = {}", path(rule.name));
                }
            }
            let saved = (0..arguments.len()).filter(|k| ruled.rules.saved.contains(*k));
            let saved: Vec<String> = saved.map(|k| k.to_string()).collect();
            if !saved.is_empty() {
                text += &format!(", saved = [{}]", saved.join(", "));
            }
        }
        text += " */ {";
        self.line(&text);
        self.nested(&call.body);
        self.line("}");
    }

    pub(super) fn forward(&mut self, f: &Forward) {
        if let Some(schedule) = f.schedule {
            self.line(&schedule.to_string());
        }
        let range = match f.length {
            Length::Known(from, to) => format!("{}..{}", self.expr(from), self.expr(to)),
            Length::Unknown { .. } => "unknown".to_string(),
        };
        let mut text =
            format!("forward loop {} over {range} carrying [{}]", f.id.0, self.names.list(&f.carried));
        if !f.kept.is_empty() {
            text += &format!(" keeping [{}]", self.names.list(&f.kept));
        }
        text += &format!(" in pieces {}..{}", self.names.value(f.from), self.names.value(f.to));
        if let Length::Unknown { reached, ended } = f.length {
            text += &format!(" until {}, {}", self.names.local(reached), self.names.local(ended));
        }
        text += " {";
        self.line(&text);
        for (name, block) in [("advance", &f.advance), ("record", &f.record)] {
            self.line(&format!("  {name}:"));
            self.nested(block);
        }
        self.line("}");
    }

    pub(super) fn sequential(&mut self, l: &Loop) {
        if let Some(schedule) = l.schedule {
            self.line(&schedule.to_string());
        }
        if !l.sums.is_empty() {
            let names: Vec<String> =
                l.sums.iter().map(|local| self.names.local(*local).to_string()).collect();
            self.line(&format!("#[sum({})]", names.join(", ")));
        }
        match &l.kind {
            LoopKind::For { var, from, to } => {
                let text =
                    format!("for {} in {}..{} {{", self.names.value(*var), self.expr(*from), self.expr(*to));
                self.line(&text);
            }
            LoopKind::While { head, condition } => {
                // Only what cannot be printed in the condition itself remains of the head.
                let start = self.text.len();
                self.nested(head);
                let head_text = self.text.split_off(start);
                if head_text.is_empty() {
                    let text = format!("while {} {{", self.expr(*condition));
                    self.line(&text);
                } else {
                    self.line("while {");
                    self.text.push_str(&head_text);
                    let text = format!("    {}", self.expr(*condition));
                    self.line(&text);
                    self.line("} {");
                }
            }
            LoopKind::Forever => self.line("loop {"),
        }
        self.nested(&l.body);
        if let Some(until) = l.until {
            let text = format!("    if {} {{ break; }}", self.expr(until));
            self.line(&text);
        }
        self.line("}");
    }
}

/// A variant is one name.
fn quoted_variant(variant: &str) -> String {
    if variant.contains("::") { quoted(variant) } else { path(variant) }
}

/// How an element was touched, in one word.
fn touched(how: Touched) -> &'static str {
    match how {
        Touched::Read => "read",
        Touched::Written => "written",
        Touched::Combined(Combine::Add) => "added",
        Touched::Combined(Combine::Min) => "min",
        Touched::Combined(Combine::Max) => "max",
        Touched::Claimed => "claimed",
    }
}
