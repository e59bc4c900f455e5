//! Which parallel loops take several rows at a time. Input: a loop with several ranges, whose iterations run in vectors; output: how many
//! rows stand side by side, and what differs between them.
//!
//! Loops inside iterations load for each row what is the same for all of them: `b[[k, j]]` in a product of matrices written as
//! loops. Rows side by side load it once, and as many sums are on their way at a time. Each sum is the chain that it is one row
//! after the other, so this changes nothing in its bits.

use ebbtide_ir::{Binary, Block, Facts, Loop, Op, Par, Program, Stmt, Type};

use crate::analysis::interior::{Decide, Interior, interior, taken};
use crate::analysis::lane_order::in_lane_order;
use crate::analysis::names::{reductions, scatters, values_inside};
use crate::analysis::varying::Varying;
use crate::analysis::vectors::{Stride, changed_in_loops, side_by_side, stride};
use crate::kernel::interval::{Before, Rows};

/// Vectors that hold sums, where a processor has 32 registers for them, and where it has 16.
const SUMS: (usize, usize) = (16, 8);

/// How iterations stand side by side.
pub(crate) struct RowsSideBySide {
    pub rows: usize,
    /// Vectors of each row.
    pub columns: usize,
    /// What differs between rows.
    pub between: Varying,
}

/// How many rows a loop takes at a time, with the interior that all of them have then, whose conditions are decided for whole rows too.
/// Data of this type runs in vectors of so many bytes.
pub(crate) fn rows_side_by_side(
    (program, facts): (&Program, &Facts),
    par: &Par,
    element: Type,
    vector_bytes: usize,
) -> Option<(Interior, RowsSideBySide)> {
    let shares = !reductions(facts, par).is_empty() || scatters(facts, par);
    if par.ranges.len() < 2 || shares {
        return None;
    }
    let between = Varying::between_rows(program, par);
    let interior = interior(program, par, &values_inside(par), Decide::RowsToo);
    let interval = interior.interval();
    let plain = |before: &Before| match before {
        Before::Value(v) => {
            !matches!(program.op(*v), Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, ..))
        }
        Before::Wrapped { .. } => false,
    };
    if interval.rows != Rows::Corners || !interval.before.iter().all(plain) {
        return None;
    }
    let by_lanes = in_lane_order((program, facts), par, &interior);
    let columns = side_by_side((program, facts), par, &interior, element, &by_lanes)?;
    let mut found = Found { program, interior: &interior, between: &between, shared: false, alike: true };
    found.block(&par.body, None);
    let Found { shared, alike, .. } = found;
    let sums = changed_in_loops(&par.body);
    if !by_lanes.is_empty() || !shared || !alike || sums == 0 {
        return None;
    }
    let most = if vector_bytes == 64 { SUMS.0 } else { SUMS.1 };
    // What takes many registers in one row, or a long text, takes as many more in each.
    let rows = (most / (columns * sums)).min(columns);
    (rows > 1).then_some((interior, RowsSideBySide { rows, columns, between }))
}

struct Found<'a> {
    program: &'a Program,
    interior: &'a Interior,
    between: &'a Varying,
    /// Does an innermost loop load a vector that is the same for all rows?
    shared: bool,
    /// Do rows take all branches and run all loops alike?
    alike: bool,
}

impl Found<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, around: Option<&Loop>) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    let innermost =
                        around.is_some_and(|l| !l.body.iter().any(|s| matches!(s, Stmt::Loop(_))));
                    if let Op::Load(_, index) = self.program.op(*v)
                        && innermost
                        && !self.between.values.contains(v)
                        && index.as_slice().iter().all(|v| self.between.uniform(*v))
                    {
                        self.shared |= stride(self.program, self.interior, *index) == Stride::Next;
                    }
                }
                Stmt::If(branch) => match taken(self.interior, branch) {
                    Some(arm) => self.block(arm, around),
                    None => {
                        self.alike &= self.between.uniform(branch.condition);
                        self.block(&branch.then, around);
                        self.block(&branch.otherwise, around);
                    }
                },
                Stmt::Loop(l) => {
                    self.alike &= !self.between.loop_diverges(l) && !self.interior.loop_differs(l);
                    stmt.blocks().for_each(|inner| self.block(inner, Some(l)));
                }
                _ => {}
            }
        }
    }
}
