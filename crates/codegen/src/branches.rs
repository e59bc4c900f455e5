//! Branches of one iteration, or of several side by side.

use ebbtide_ir::{Branch, Op, Stmt, walk};

use crate::body::{Body, Form};
use crate::interior::taken;
use crate::operation::mask_type;
use crate::unit::{Checks, Text, line};

impl Text<'_> {
    pub fn body_branch(&mut self, body: &Body, branch: &Branch, mask: Option<&str>) {
        if let Some(block) = body.interior().and_then(|interior| taken(interior, branch)) {
            line!(self, "{{");
            self.body(body, block, mask);
            return line!(self, "}}");
        }
        if let Some(arm) = self.usual_arm(branch) {
            return self.body(body, arm, mask);
        }
        let condition = self.known(body, branch.condition);
        if self.checks == Checks::Proved && (mask.is_some() || self.straight(branch)) {
            return self.predicated_branch(body, &condition, branch, mask);
        }
        let Form::Vector { element, lanes, .. } = body.form else {
            return self.at_once(|text| text.plain_branch(body, &condition, branch, mask));
        };
        if !self.is_vector(body, branch.condition) {
            return self.plain_branch(body, &condition, branch, mask);
        }
        // Masks are not printed side by side.
        self.failed |= self.jam.is_some();
        let m = mask_type(element, lanes);
        for (block, condition) in
            [(&branch.then, condition.clone()), (&branch.otherwise, format!("op_not_{m}({condition})"))]
        {
            if block.is_empty() {
                continue;
            }
            let name = format!("m{}", self.fresh());
            let inner = match mask {
                Some(outer) => format!("op_and_{m}({outer}, {condition})"),
                None => condition,
            };
            line!(self, "{{ const {m} {name} = {inner};");
            self.body(body, block, Some(&name));
            line!(self, "}}");
        }
    }

    /// Can both arms of a branch be run one after the other, for the cost of a little arithmetic?
    pub fn straight(&self, branch: &Branch) -> bool {
        let (mut straight, mut statements) = (true, 0);
        for block in [&branch.then, &branch.otherwise] {
            walk(block, &mut |stmt| {
                statements += 1;
                straight &= match stmt {
                    Stmt::Let(v) => !matches!(self.program.op(*v), Op::Math(..) | Op::Rand(..)),
                    stmt => !matches!(stmt, Stmt::Loop(_)),
                };
            });
        }
        straight && statements < 200
    }

    /// Both arms one after the other, each statement under its condition: nothing waits for it but stores.
    fn predicated_branch(&mut self, body: &Body, condition: &str, branch: &Branch, mask: Option<&str>) {
        let outer = mask.map_or(String::new(), |mask| format!("{mask} && "));
        let arms = [(&branch.then, condition.to_string()), (&branch.otherwise, format!("!{condition}"))];
        for (block, condition) in arms {
            if !block.is_empty() {
                let name = format!("m{}", self.fresh());
                line!(self, "const b8 {name} = {outer}{condition};");
                self.body(body, block, Some(&name));
            }
        }
    }

    fn plain_branch(&mut self, body: &Body, condition: &str, branch: &Branch, mask: Option<&str>) {
        line!(self, "if ({condition}) {{");
        self.body(body, &branch.then, mask);
        if !branch.otherwise.is_empty() {
            line!(self, "}} else {{");
            self.body(body, &branch.otherwise, mask);
        }
        line!(self, "}}");
    }
}
