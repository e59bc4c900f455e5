//! Segments with operations of the host: what runs on the GPU between them, and what the host drives around them.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Block, Branch, LibraryCall, LibraryOp, Loop, LoopKind, Region, Stmt, ValueId, walk_program_level,
};

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Part {
    /// A kernel, by its number.
    Kernel(usize),
    /// An operation of the host.
    Call(LibraryCall),
    /// A loop whose passes the host counts, or asks for.
    Loop {
        /// How it continues.
        around: Around,
        /// What it repeats.
        body: Vec<Part>,
        /// The loop is left after a pass in which this holds.
        until: Option<ValueId>,
    },
    /// A branch that the host takes.
    If {
        /// Which way.
        condition: ValueId,
        /// Where it holds.
        then: Vec<Part>,
        /// Where it does not.
        otherwise: Vec<Part>,
    },
}

/// How a loop continues.
#[derive(Clone, Debug)]
pub enum Around {
    /// The variable takes each number between the two bounds.
    For { var: ValueId, from: ValueId, to: ValueId },
    /// As long as what the parts compute holds.
    While { head: Vec<Part>, condition: ValueId },
    /// Until it is left.
    Forever,
}

/// Segments cut into kernels.
#[derive(Debug, Default)]
pub struct Cut {
    /// What each kernel does.
    pub kernels: Vec<Block>,
    /// Values that the host must know.
    pub seen: BTreeSet<ValueId>,
}

/// Does a block have an operation of the host at the level of the program?
pub fn calls_the_host(block: &[Stmt]) -> bool {
    let mut found = false;
    walk_program_level(block, &mut |stmt| {
        found |= matches!(stmt, Stmt::Library(LibraryCall { op: LibraryOp::Custom(_), .. }));
    });
    found
}

impl Cut {
    /// A segment as things to do. The depth of recursion is that of nesting in the source.
    pub fn segment(&mut self, block: &Block) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut open = Block::new();
        self.block(block, &mut open, &mut parts);
        self.close(&mut open, &mut parts);
        parts
    }

    fn close(&mut self, open: &mut Block, parts: &mut Vec<Part>) {
        if !open.is_empty() {
            parts.push(Part::Kernel(self.kernels.len()));
            self.kernels.push(std::mem::take(open));
        }
    }

    fn block(&mut self, block: &Block, open: &mut Block, parts: &mut Vec<Part>) {
        for stmt in block {
            if !calls_the_host(std::slice::from_ref(stmt)) {
                open.push(stmt.clone());
                continue;
            }
            match stmt {
                // A region that cannot yield, and a called program, are what they do.
                Stmt::Region(Region { body, .. }) => self.block(body, open, parts),
                Stmt::Call(call) => self.block(&call.body, open, parts),
                Stmt::Library(call) => {
                    self.close(open, parts);
                    self.seen.extend(call.arguments.iter().filter_map(|bound| bound.scalar()));
                    parts.push(Part::Call(call.clone()));
                }
                Stmt::If(Branch { condition, then, otherwise }) => {
                    self.close(open, parts);
                    self.seen.insert(*condition);
                    let [then, otherwise] = [then, otherwise].map(|block| self.segment(block));
                    parts.push(Part::If { condition: *condition, then, otherwise });
                }
                Stmt::Loop(Loop { kind, body, until, .. }) => {
                    self.close(open, parts);
                    self.seen.extend(*until);
                    let around = match kind {
                        LoopKind::For { var, from, to } => {
                            self.seen.extend([*from, *to]);
                            Around::For { var: *var, from: *from, to: *to }
                        }
                        LoopKind::While { head, condition } => {
                            self.seen.insert(*condition);
                            Around::While { head: self.segment(head), condition: *condition }
                        }
                        LoopKind::Forever => Around::Forever,
                    };
                    let body = self.segment(body);
                    parts.push(Part::Loop { around, body, until: *until });
                }
                // Operations of the host stand nowhere else.
                other => open.push(other.clone()),
            }
        }
    }

    /// A block that is never run: since it uses what the host must know, kernels hand it out.
    pub fn witness(&self) -> Block {
        let used = |condition: &ValueId| {
            Stmt::If(Branch { condition: *condition, then: Block::new(), otherwise: Block::new() })
        };
        self.seen.iter().map(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ebbtide_ir::{Access, Bound, Builder, Literal, Operation, Rules, Type, Work};

    use super::*;

    #[test]
    fn what_stands_around_an_operation_is_driven_and_the_rest_is_kernels() {
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let steps = b.scalar("steps", Type::Index);
        let zero = b.literal(Literal::index(0));
        let one = b.literal(Literal::from(1.0));
        let operation = || Operation {
            name: "nothing".to_string(),
            work: Work::Host(Arc::new(|_| Ok(()))),
            rules: Rules::none(),
        };
        b.fill(x, one);
        b.begin_for("t", zero, steps);
        b.fill(x, one);
        let scale = b.load(x, &[zero]);
        b.operation(operation(), &[Bound::Array(x, Access::Write), Bound::Scalar(scale)]);
        b.begin_for("k", zero, steps);
        b.fill(x, one);
        b.end_loop(None);
        b.end_loop(None);
        let program = b.finish().expect("it is lawful");
        let mut cut = Cut::default();
        let parts = cut.segment(&program.body);
        let [Part::Kernel(0), Part::Loop { around: Around::For { .. }, body, until: None }] = &parts[..]
        else {
            panic!("{parts:?}");
        };
        assert!(matches!(body[..], [Part::Kernel(1), Part::Call(_), Part::Kernel(2)]), "{body:?}");
        assert!(calls_the_host(&program.body) && !cut.kernels.iter().any(|kernel| calls_the_host(kernel)));
        assert!(cut.seen.contains(&scale) && cut.seen.contains(&steps));
        assert_eq!(cut.witness().len(), cut.seen.len());
    }
}
