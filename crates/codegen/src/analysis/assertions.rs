//! Where assertions stand. Input: a segment; output: by assertion the loops around it and how its position is put in words.

use std::collections::BTreeMap;

use ebbtide_ir::{Binary, Block, LoopKind, Op, Program, Stmt, ValueId};

use crate::kernel::name::{Name, Variable};
use crate::unit::{COUNTERS, Position};

/// The loops around an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    pub position: Position,
    /// What tells how far each loop is: its index, or how many iterations of it are finished.
    pub counters: Vec<Name>,
}

/// The assertions of a segment, by the value that asks their condition.
pub(crate) fn assertions(program: &Program, segment: &Block) -> BTreeMap<ValueId, Around> {
    let mut found = BTreeMap::new();
    if !program.assertions.is_empty() {
        let position = Position { before: Vec::new(), rest: program.name.clone() };
        let root = Around { position, counters: Vec::new() };
        Walk { program, found: &mut found }.block(segment, &root, false);
    }
    found
}

struct Walk<'a> {
    program: &'a Program,
    found: &'a mut BTreeMap<ValueId, Around>,
}

impl Walk<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, around: &Around, in_iteration: bool) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) if self.is_assertion(*v) => {
                    self.found.insert(*v, around.clone());
                }
                Stmt::If(branch) => {
                    self.block(&branch.then, &around.inside("if/then"), in_iteration);
                    self.block(&branch.otherwise, &around.inside("if/else"), in_iteration);
                }
                Stmt::Loop(l) => {
                    let inside = match &l.kind {
                        LoopKind::For { var, .. } => {
                            around.inside("for").counted(&self.named(*var), Name::value(*var))
                        }
                        // Iterations do not count those of such loops.
                        LoopKind::While { .. } if in_iteration => around.inside("while"),
                        LoopKind::Forever if in_iteration => around.inside("loop"),
                        LoopKind::While { .. } => {
                            around.inside("while").counted("=", Variable::Finished(l.id).into())
                        }
                        LoopKind::Forever => {
                            around.inside("loop").counted("=", Variable::Finished(l.id).into())
                        }
                    };
                    stmt.blocks().for_each(|block| self.block(block, &inside, in_iteration));
                }
                Stmt::Par(par) => {
                    let mut inside = around.inside("par");
                    for range in &par.ranges {
                        inside = inside.counted(&self.named(range.var), Name::value(range.var));
                    }
                    self.block(&par.body, &inside, true);
                }
                _ => {
                    let inside = match stmt {
                        Stmt::Region(region) => {
                            around.inside(&self.program.labels[region.label.index()].to_string())
                        }
                        Stmt::Call(call) => around.inside(&call.name),
                        _ => around.clone(),
                    };
                    stmt.blocks().for_each(|block| self.block(block, &inside, in_iteration));
                }
            }
        }
    }

    fn is_assertion(&self, v: ValueId) -> bool {
        let value = self.program.value(v);
        matches!(value.op, Op::Binary(Binary::Div, ..))
            && !value.ty.is_float()
            && !self.program.assertion_texts(&value.site).is_empty()
    }

    fn named(&self, v: ValueId) -> String {
        format!(" {}=", self.program.value(v).name.as_deref().unwrap_or("_"))
    }
}

impl Around {
    /// One step further in.
    fn inside(&self, step: &str) -> Around {
        let mut inside = self.clone();
        inside.position.rest += &format!("/{step}");
        inside
    }

    /// With one more counter behind a text, as long as there is room for it.
    fn counted(mut self, text: &str, counter: Name) -> Around {
        self.position.rest += text;
        if self.counters.len() < COUNTERS {
            self.position.before.push(std::mem::take(&mut self.position.rest));
            self.counters.push(counter);
        } else {
            self.position.rest.push('…');
        }
        self
    }
}
