//! Branches of one iteration, or of several side by side.

use ebbtide_ir::Branch;

use crate::analysis::work::is_straight;

use crate::analysis::interior::taken;
use crate::print::body::{Body, Form};
use crate::print::emitter::{Checks, Emitter, line};
use crate::print::operation::mask_type;

impl Emitter<'_> {
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
        if self.checks == Checks::Proved && (mask.is_some() || is_straight(self.program, branch)) {
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
