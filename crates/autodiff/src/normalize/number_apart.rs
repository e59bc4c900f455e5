//! Gives every computation a value of its own.
//!
//! - Input: a program in which several blocks may compute one value: the two halves of a sweep are made of one loop body,
//!   and a loop that is swept when its iteration is reversed stands in the program once more.
//! - Output: the same program, each value computed by one `let` or one loop, each parallel loop under its own number.
//! - Invariant: no entry of the table of values changes, and operands stand before their uses. So what the driver knows
//!   by number (bounds of loops that push) stays what it was.

use std::collections::{HashMap, HashSet};

use ebbtide_ir::{Block, Bound, Length, Loop, LoopKind, Op, ParId, Program, Stmt, ValueId};

type Renamed = HashMap<ValueId, ValueId>;

/// Numbers apart what is computed in several places.
pub(crate) fn number_apart(program: &mut Program) {
    let mut body = std::mem::take(&mut program.body);
    let mut pass = NumberApart { program, values: HashSet::new(), pars: HashSet::new() };
    pass.block(&mut body, &Renamed::new());
    program.body = body;
}

struct NumberApart<'p> {
    program: &'p mut Program,
    /// Values that a statement before this one computes.
    values: HashSet<ValueId>,
    pars: HashSet<ParId>,
}

fn of(renamed: &Renamed, v: ValueId) -> ValueId {
    renamed.get(&v).copied().unwrap_or(v)
}

impl NumberApart<'_> {
    /// Names of a block end with it, but for those that the loop around it asks at its end: they are in the result. The
    /// depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &mut Block, around: &Renamed) -> Renamed {
        let mut renamed = around.clone();
        for stmt in block {
            self.statement(stmt, &mut renamed);
        }
        renamed
    }

    /// The number under which a value is computed here.
    fn defined(&mut self, v: ValueId, renamed: &mut Renamed) -> ValueId {
        let op = self.program.op(v).map(|o| of(renamed, o));
        if op == *self.program.op(v) && self.values.insert(v) {
            renamed.remove(&v);
            return v;
        }
        let decl = self.program.value(v).clone();
        let new = self.program.add_value(op, decl.ty, decl.site);
        self.program.values[new.index()].name = decl.name;
        self.values.insert(new);
        renamed.insert(v, new);
        new
    }

    fn statement(&mut self, stmt: &mut Stmt, renamed: &mut Renamed) {
        match stmt {
            Stmt::Let(v) => *v = self.defined(*v, renamed),
            Stmt::Declare(_, v) | Stmt::Set(_, v) | Stmt::Fill(_, v, _) => *v = of(renamed, *v),
            Stmt::Store(s) | Stmt::Update(_, s) => {
                s.index = s.index.map(|v| of(renamed, v));
                s.value = of(renamed, s.value);
            }
            Stmt::Claim(claim) => claim.index = claim.index.map(|v| of(renamed, v)),
            Stmt::Library(call) => {
                for bound in &mut call.arguments {
                    if let Bound::Scalar(v) = bound {
                        *v = of(renamed, *v);
                    }
                }
            }
            Stmt::If(branch) => {
                branch.condition = of(renamed, branch.condition);
                self.block(&mut branch.then, renamed);
                self.block(&mut branch.otherwise, renamed);
            }
            Stmt::Loop(l) => self.sequential(l, renamed),
            Stmt::Par(par) => {
                if !self.pars.insert(par.id) {
                    par.id = ParId::from_index(self.program.pars as usize);
                    self.program.pars += 1;
                    self.pars.insert(par.id);
                }
                for range in &mut par.ranges {
                    (range.from, range.to) = (of(renamed, range.from), of(renamed, range.to));
                }
                for requirement in &mut par.requires {
                    requirement.condition = of(renamed, requirement.condition);
                }
                let mut inside = renamed.clone();
                for range in &mut par.ranges {
                    range.var = self.defined(range.var, &mut inside);
                }
                self.block(&mut par.body, &inside);
            }
            Stmt::Forward(f) => {
                // Its bounds may stand in a region that is run again.
                if let Length::Known(from, to) = &mut f.length {
                    (*from, *to) = (of(renamed, *from), of(renamed, *to));
                }
                self.block(&mut f.advance, renamed);
                self.block(&mut f.record, renamed);
            }
            other => other.blocks_mut().for_each(|block| drop(self.block(block, renamed))),
        }
    }

    fn sequential(&mut self, l: &mut Loop, renamed: &Renamed) {
        let mut inside = renamed.clone();
        match &mut l.kind {
            LoopKind::For { var, from, to } => {
                (*from, *to) = (of(renamed, *from), of(renamed, *to));
                debug_assert_eq!(*self.program.op(*var), Op::LoopVar);
                *var = self.defined(*var, &mut inside);
            }
            LoopKind::While { head, condition } => {
                let asked = self.block(head, renamed);
                *condition = of(&asked, *condition);
            }
            LoopKind::Forever => {}
        }
        let asked = self.block(&mut l.body, &inside);
        l.until = l.until.map(|v| of(&asked, v));
    }
}
