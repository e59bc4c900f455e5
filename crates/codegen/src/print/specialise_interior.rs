//! Iterations away from boundaries.
//!
//! A loop without checks may have conditions over its indices: they tell what happens at boundaries, and far from them each
//! is always true or always false. Nearly all iterations are such, so these have a text of their own, in which the
//! conditions are decided: no predicates, and no values for what is not loaded. A warp takes it where all its iterations
//! are of that kind.

use ebbtide_ir::{Block, Branch, Par};

use crate::analysis::boundary_conditions::{statements_of, usual_conditions};
use crate::print::body::{Body, Form, Team};
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// The arm of a branch that the iterations being printed take, where that is known.
    pub fn usual_arm<'b>(&self, branch: &'b Branch) -> Option<&'b Block> {
        self.usual.get(&branch.condition).map(|holds| if *holds { &branch.then } else { &branch.otherwise })
    }

    /// Prints the test whether an iteration, or each of several side by side, is a usual one, around two texts of it: one
    /// for such iterations, and one for all.
    pub fn usual_and_other(&mut self, par: &Par, sides: usize, print: impl Fn(&mut Self)) {
        let usual = usual_conditions(self.program, &self.inside, par);
        if usual.is_empty() {
            return print(self);
        }
        let lets = statements_of(self.program, &self.inside, par, &usual);
        let body = Body { form: Form::Careful, reductions: &[], exit: 0, team: Team::Alone };
        let mut tests = Vec::new();
        line!(self, "{{");
        self.each_side(sides, |text| {
            text.body(&body, &lets, None);
            let conditions = usual.iter().map(|(v, holds)| (text.value(*v), holds));
            tests.extend(conditions.map(|(v, holds)| if *holds { v } else { format!("!{v}") }));
        });
        line!(self, "if (__all_sync(__activemask(), {})) {{", tests.join(" && "));
        self.usual = usual;
        print(self);
        self.usual.clear();
        line!(self, "}} else {{");
        print(self);
        line!(self, "}} }}");
    }
}
