//! The ends of rows in vectors. Input: a parallel loop all of whose accesses are proved to be in bounds; output: what holds for whole
//! rows, where no condition is decided and no remainder taken for a sum, and what must be tested besides the proof; or nothing,
//! where an iteration does what the lanes of a mask cannot.
//!
//! A lane takes part in what is under a condition where that holds for it. Conditions compare sums of the innermost variable with
//! what is the same for all rows: a lane is so far from the first one, and the bound is so far from the first one too.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, Facts, Op, Par, Program, Sharing, Stmt, Type, ValueId};

use crate::analysis::bounds_proof::Proof;
use crate::analysis::interior::{Interior, whole_rows};
use crate::analysis::names::sharing;
use crate::kernel::bounds_test::Test;

/// What holds for whole rows.
pub(crate) struct RowEnds {
    pub interior: Interior,
    /// What must hold besides the tests of the proof.
    pub tests: BTreeSet<Test>,
}

/// What holds for the whole rows of a loop with these values.
pub(crate) fn row_ends(
    (program, facts): (&Program, &Facts),
    par: &Par,
    inside: &BTreeSet<ValueId>,
    proof: &Proof,
) -> Option<RowEnds> {
    let interior = whole_rows(program, par, inside, &proof.exact);
    let shared = sharing(facts, par);
    let own = |stmt: &Stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) => shared.of(s) == Sharing::Own,
        stmt => matches!(stmt, Stmt::Let(_) | Stmt::Declare(..) | Stmt::Set(..) | Stmt::If(_)),
    };
    let mut ends = RowEnds { interior, tests: BTreeSet::new() };
    ends.block(program, inside, &par.body, &own)?;
    Some(ends)
}

impl RowEnds {
    /// The depth of recursion is that of nesting in the source.
    fn block(
        &mut self,
        program: &Program,
        inside: &BTreeSet<ValueId>,
        block: &Block,
        own: &dyn Fn(&Stmt) -> bool,
    ) -> Option<()> {
        for stmt in block {
            own(stmt).then_some(())?;
            if let Stmt::Let(v) = stmt
                && let Op::Compare(_, a, b) = *program.op(*v)
                && program.ty(a) == Type::Index
                && !self.interior.varying.uniform(*v)
            {
                self.compare(program, inside, [a, b])?;
            }
            stmt.blocks().try_for_each(|block| self.block(program, inside, block, own))?;
        }
        Some(())
    }

    /// Tests that two indices are small numbers, which lanes compare.
    fn compare(&mut self, program: &Program, inside: &BTreeSet<ValueId>, two: [ValueId; 2]) -> Option<()> {
        let [a, b] = two.map(|v| self.interior.linear_here(program, v).map(|sum| sum.tame()));
        let (a, b) = (a?, b?);
        let test = Test::Tame(a, b);
        test.is_about(&|v| !inside.contains(&v)).then(|| {
            self.tests.insert(test);
        })
    }
}
