//! Results that a loop leaves in an array, where its reversal can read them.
//!
//! The slope of `tanh`, `exp` and their like is found from the result. Where `next[i] = sum.tanh()` leaves it in an array whose old
//! contents the reversal needs anyway, every later write of the array is recorded: when the loop is reversed, and before what
//! the loop itself overwrote is put back, the array holds what the loop left. So the sum is not computed again.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Function, Op, Par, ParId, Program, Stmt, Unary, ValueId, walk_program_level};

use crate::analysis::activity::Activity;
use crate::analysis::effects::{only_store, reads_of, written_by};
use crate::analysis::extremes::extreme_arrays;
use crate::analysis::needed::Needed;
use crate::analysis::store_forwarding::Left;
use crate::analysis::top_level::TopLevel;

/// By parallel loop: the results that its reversal reads where it left them.
pub(crate) fn left_in_arrays(
    program: &Program,
    activity: &Activity,
    needed: &Needed,
    is_own_tape: &dyn Fn(ArrayId, TopLevel) -> bool,
) -> BTreeMap<ParId, Left> {
    let mut found = BTreeMap::new();
    let mut yields = false;
    walk_program_level(&program.body, &mut |stmt| yields |= matches!(stmt, Stmt::Region(_)));
    // The host may change what the loop left.
    if yields {
        return found;
    }
    for (position, top) in TopLevel::all(program) {
        walk_program_level(std::slice::from_ref(top), &mut |stmt| {
            let Stmt::Par(par) = stmt else { return };
            let recorded = |a: &ArrayId| needed.puts_all_back(*a, position) && !is_own_tape(*a, position);
            let left = left_by(program, activity, par, &recorded);
            if !left.is_empty() {
                found.insert(par.id, left);
            }
        });
    }
    found
}

/// The results that a loop leaves in arrays that it does not read, each iteration in an element of its own.
fn left_by(program: &Program, activity: &Activity, par: &Par, recorded: &dyn Fn(&ArrayId) -> bool) -> Left {
    let read = reads_of(program, &par.body);
    if !extreme_arrays(activity, &par.body).is_empty() {
        return Left::new();
    }
    let own: Vec<ValueId> = par.ranges.iter().map(|range| range.var).collect();
    let arrays: BTreeSet<ArrayId> = written_by(par);
    let arrays =
        arrays.into_iter().filter(|a| activity.arrays.contains(a) && !read.contains(a) && recorded(a));
    let stores =
        arrays.filter_map(|a| only_store(par, a).filter(|s| has_slope_of_result(program.op(s.value))));
    let stored = par.body.iter().filter_map(|stmt| if let Stmt::Store(s) = stmt { Some(s.id) } else { None });
    let plain: BTreeSet<_> = stored.collect();
    let stores = stores.filter(|s| plain.contains(&s.id) && s.index.as_slice() == own);
    stores.map(|s| (s.value, (s.array, s.index))).collect()
}

/// Is the slope found from the result alone, and does the result take long to compute?
fn has_slope_of_result(op: &Op) -> bool {
    use Function::{Cbrt, Exp, Exp2, ExpM1, Tan, Tanh};
    match op {
        Op::Math(f, ..) => matches!(f, Tan | Tanh | Exp | Exp2 | ExpM1 | Cbrt),
        Op::Unary(Unary::Sqrt, _) => true,
        _ => false,
    }
}
