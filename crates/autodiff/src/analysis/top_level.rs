//! The statements at the top level of the program that is differentiated.
//!
//! They are reversed one by one, the last one first, and what must be recorded depends on what stands before and behind them. So
//! their identity is their place: the program does not change while there are facts about it.

use ebbtide_ir::{Program, Stmt};

/// A statement at the top level of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TopLevel(usize);

impl TopLevel {
    /// All statements at the top level, in order.
    pub fn all(program: &Program) -> impl DoubleEndedIterator<Item = (TopLevel, &Stmt)> + ExactSizeIterator {
        program.body.iter().enumerate().map(|(at, stmt)| (TopLevel(at), stmt))
    }

    /// The statement.
    pub fn stmt(self, program: &Program) -> Option<&Stmt> {
        program.body.get(self.0)
    }

    /// The statements before it.
    pub fn before(self, program: &Program) -> &[Stmt] {
        program.body.get(..self.0).unwrap_or_default()
    }

    /// The statements behind it.
    pub fn behind(self, program: &Program) -> &[Stmt] {
        program.body.get(self.0 + 1..).unwrap_or_default()
    }
}
