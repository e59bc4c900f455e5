//! Iterations away from boundaries.
//!
//! A loop without checks may have conditions over its indices: they tell what happens at boundaries, and far from them each
//! is always true or always false. Nearly all iterations are such, so these have a text of their own, in which the
//! conditions are decided: no predicates, and no values for what is not loaded. A warp takes it where all its iterations
//! are of that kind.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Block, Branch, Par, Stmt, Type, ValueId, walk};

use crate::body::{Body, Form};
use crate::interior::far_from_boundaries;
use crate::unit::{Text, line};

/// What conditions are far from boundaries.
pub(crate) type Usual = BTreeMap<ValueId, bool>;

impl Text<'_> {
    /// What the conditions of branches are in most iterations of a loop, where that depends on indices alone.
    fn usual_conditions(&self, par: &Par) -> Usual {
        let of_indices = self.of_indices(par);
        let mut usual = Usual::new();
        let mut blocks: Vec<&Block> = vec![&par.body];
        while let Some(block) = blocks.pop() {
            for stmt in block {
                let Stmt::If(branch) = stmt else {
                    blocks.extend(stmt.blocks());
                    continue;
                };
                let at = |at| far_from_boundaries(self.program, branch.condition, at);
                let [left, holds, right] = [at(100), at(500), at(900)];
                if of_indices.contains(&branch.condition) && left == holds && holds == right {
                    usual.insert(branch.condition, holds);
                    blocks.push(if holds { &branch.then } else { &branch.otherwise });
                } else {
                    blocks.extend([&branch.then, &branch.otherwise]);
                }
            }
        }
        usual
    }

    /// The arm of a branch that the iterations being printed take, where that is known.
    pub fn usual_arm<'b>(&self, branch: &'b Branch) -> Option<&'b Block> {
        self.usual.get(&branch.condition).map(|holds| if *holds { &branch.then } else { &branch.otherwise })
    }

    /// The indices and conditions of a loop's body that are computed of its variables alone.
    fn of_indices(&self, par: &Par) -> BTreeSet<ValueId> {
        let mut known: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
        walk(&par.body, &mut |stmt| {
            let Stmt::Let(v) = stmt else { return };
            let op = self.program.op(*v);
            let plain = op.is_pure() && matches!(self.program.ty(*v), Type::Index | Type::Bool);
            if plain && op.operands().all(|o| known.contains(&o) || !self.inside.contains(&o)) {
                known.insert(*v);
            }
        });
        known
    }

    /// Prints the test whether an iteration, or each of several side by side, is a usual one, around two texts of it: one
    /// for such iterations, and one for all.
    pub fn usual_and_other(&mut self, par: &Par, sides: usize, print: impl Fn(&mut Self)) {
        let usual = self.usual_conditions(par);
        if usual.is_empty() {
            return print(self);
        }
        let mut needed: Vec<ValueId> = usual.keys().copied().collect();
        let mut at = 0;
        while at < needed.len() {
            needed.extend(self.program.op(needed[at]).operands().filter(|o| self.inside.contains(o)));
            at += 1;
        }
        let needed: BTreeSet<ValueId> = needed.into_iter().collect();
        let mut lets = Vec::new();
        walk(&par.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && needed.contains(v)
            {
                lets.push(stmt.clone());
            }
        });
        let body = Body { form: Form::Careful, reductions: &[], exit: 0 };
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
