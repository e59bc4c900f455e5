//! Which loops inside other loops are swept under schedules of their own, and which are recorded.
//!
//! A loop that is swept has a piece that runs what is inside it without recording: all of that is written once more. If every
//! loop of a nest were swept, what is written would grow with the square of the depth. So the outermost ones are, and deeper
//! ones are part of the tape of an iteration around them, unless nobody could say before how long that tape is.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affines, Block, Loop, LoopId, LoopKind, Program, Stmt, ValueId, depends_on_arguments_alone,
};

use crate::gradient::Inner;

/// How many loops around one another are swept. Programs seldom have more of them; where one has, an iteration of the fourth
/// keeps the tape of all loops inside it, and the plan counts that.
const LEVELS: usize = 4;

/// The loops inside others, or inside branches, that are swept.
pub(crate) fn swept_loops((source, affines): (&Program, &Affines), inner: Inner) -> BTreeSet<LoopId> {
    let mut found = SweptLoops { source, affines, swept: BTreeSet::new() };
    if inner == Inner::Swept {
        found.block(&source.body, &Around::default());
    }
    found.swept
}

/// What stands around a block.
#[derive(Clone, Copy, Default)]
struct Around {
    /// How many loops that are swept.
    levels: usize,
    /// The variable of the innermost of them, where its iterations can be counted by it.
    counted: Option<ValueId>,
}

struct SweptLoops<'a> {
    source: &'a Program,
    affines: &'a Affines,
    swept: BTreeSet<LoopId>,
}

impl SweptLoops<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, around: &Around) {
        for stmt in block {
            match stmt {
                Stmt::Loop(l) => {
                    let mut variables = around.counted.into_iter().collect();
                    if around.levels < LEVELS || !self.is_counted(l, &mut variables) {
                        self.sweep(l, around);
                    }
                }
                Stmt::If(_) => stmt.blocks().for_each(|inner| self.block(inner, around)),
                // It is run again and reversed in one go: loops in it are as those of a whole program.
                Stmt::Region(region) => {
                    for stmt in &region.body {
                        match stmt {
                            Stmt::Loop(l) => self.sweep(l, around),
                            other => other.blocks().for_each(|inner| self.block(inner, around)),
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn sweep(&mut self, l: &Loop, around: &Around) {
        self.swept.insert(l.id);
        let alone = |v: ValueId| depends_on_arguments_alone(self.source, v);
        let counted = match l.kind {
            LoopKind::For { var, from, to } if l.until.is_none() && alone(from) && alone(to) => Some(var),
            _ => None,
        };
        self.block(&l.body, &Around { levels: around.levels + 1, counted });
    }

    /// Can it be said before a launch how often the loop, and each loop inside it, runs for each value of these variables?
    fn is_counted(&self, l: &Loop, variables: &mut Vec<ValueId>) -> bool {
        let LoopKind::For { var, from, to } = l.kind else { return false };
        let known = |v: ValueId| {
            let mut atoms = self.affines.form(v).terms.iter().map(|(atom, _)| *atom);
            atoms.all(|atom| variables.contains(&atom) || depends_on_arguments_alone(self.source, atom))
        };
        // How it is to be reversed, where the source says so, is asked of a loop that is swept.
        if l.until.is_some() || l.schedule.is_some() || !known(from) || !known(to) {
            return false;
        }
        variables.push(var);
        let counted = self.all_are_counted(&l.body, variables);
        variables.pop();
        counted
    }

    fn all_are_counted(&self, block: &Block, variables: &mut Vec<ValueId>) -> bool {
        block.iter().all(|stmt| match stmt {
            Stmt::Loop(l) => self.is_counted(l, variables),
            Stmt::Region(_) => false,
            Stmt::If(_) => stmt.blocks().all(|inner| self.all_are_counted(inner, variables)),
            _ => true,
        })
    }
}
