//! The identity of writes: what facts about a write are kept under.
//!
//! Other statements of which facts are kept have an identity anyway: the value that they compute, the loop, the parallel loop, the
//! region. A write has none but a number of its own: two of them may write the same value to the same elements.

use super::{Block, Program, Stmt};
use crate::syntax::ids::WriteId;

impl WriteId {
    /// What a write has until [`Program::number_writes`] gives it a number of its own.
    pub const UNNUMBERED: WriteId = WriteId(u32::MAX);
}

impl Stmt {
    /// The identity of a write; `None` for statements of another kind.
    pub fn write(&self) -> Option<WriteId> {
        match self {
            Stmt::Store(s) | Stmt::Update(_, s) => Some(s.id),
            Stmt::Fill(.., id) | Stmt::Copy { id, .. } => Some(*id),
            _ => None,
        }
    }

    fn write_mut(&mut self) -> Option<&mut WriteId> {
        match self {
            Stmt::Store(s) | Stmt::Update(_, s) => Some(&mut s.id),
            Stmt::Fill(.., id) | Stmt::Copy { id, .. } => Some(id),
            _ => None,
        }
    }
}

impl Program {
    /// Numbers the writes of the program, in the order in which they are printed.
    ///
    /// Whoever makes a program calls it in the end: transformations may copy statements, and a copy is another write. Facts are
    /// those of one program, so numbers need not outlive it; the verifier holds that no two writes share one.
    pub fn number_writes(&mut self) {
        number(&mut self.body, &mut 0);
    }
}

/// The depth of recursion is that of nesting in the source.
fn number(block: &mut Block, next: &mut u32) {
    for stmt in block {
        if let Some(id) = stmt.write_mut() {
            *id = WriteId(*next);
            *next += 1;
        }
        stmt.blocks_mut().for_each(|inner| number(inner, next));
    }
}
