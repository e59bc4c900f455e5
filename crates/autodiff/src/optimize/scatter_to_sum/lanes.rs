//! Long sums in lanes.
//!
//! A loop over the elements runs in vectors of neighbouring elements. Where these read what lies far apart in memory, and
//! the iterations of a preimage read what lies side by side (`w[[k, i]]` for the sum over `i` at element `k`), it is the
//! preimage that should run in vectors: it is dealt out to lanes, each of which adds up its share in order; then the lanes
//! are added up in order, and what was left over behind them.

use ebbtide_ir::{Affines, Block, Op, Program, Stmt, walk};

use crate::analysis::index_preimage::{Part, Step};

/// The number of lanes: four of the widest vectors, so that none waits for the one before.
pub(crate) const LANES: i64 = 32;

/// Is a sum over these steps better taken in lanes?
pub(super) fn wants_lanes(program: &Program, affines: &Affines, steps: &[Step], slice: &Block) -> bool {
    let Some((Step::Each { variable, within: None, .. }, before)) = steps.split_last() else { return false };
    // The places of the lanes are many times those of the elements: not for tables.
    let mut follows = None;
    for step in before {
        match step {
            Step::Follow { variable, dimension: 0, .. } => follows = Some(variable.var),
            Step::Check { dimension: 0, .. } | Step::Each { .. } => {}
            _ => return false,
        }
    }
    let Some(follows) = follows else { return false };
    let (mut apart, mut beside) = (false, true);
    walk(slice, &mut |stmt| {
        let Stmt::Let(v) = stmt else { return };
        let Op::Load(_, index) = *program.op(*v) else { return };
        let Some((last, outer)) = index.as_slice().split_last() else { return };
        let far = |var| outer.iter().any(|v| affines.form(*v).coefficient(var) != 0);
        apart |= far(follows);
        beside &= !far(variable.var) && affines.form(*last).coefficient(variable.var).abs() <= 1;
    });
    apart && beside
}

/// The steps with the last variable in one part of its values.
pub(super) fn with_part(steps: &[Step], part: Part) -> Vec<Step> {
    let mut steps = steps.to_vec();
    if let Some(Step::Each { part: of_last, .. }) = steps.last_mut() {
        *of_last = part;
    }
    steps
}
