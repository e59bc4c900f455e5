//! Arrays into which parallel loops take minima or maxima.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Op, Par, Program, Stmt, walk};

use crate::analysis::activity::Activity;
use crate::error::Error;

/// The active arrays that a block takes minima or maxima into.
pub(crate) fn extreme_arrays(activity: &Activity, block: &[Stmt]) -> BTreeSet<ArrayId> {
    let mut arrays = BTreeSet::new();
    walk(block, &mut |stmt| {
        if let Stmt::Update(Combine::Min | Combine::Max, s) = stmt
            && activity.arrays.contains(&s.array)
        {
            arrays.insert(s.array);
        }
    });
    arrays
}

/// Does a parallel loop take minima of an array, or maxima, and use it for nothing else?
pub(crate) fn extremes_alone(source: &Program, par: &Par, array: ArrayId) -> bool {
    let (mut ways, mut other) = (BTreeSet::new(), false);
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Update(how, s) if s.array == array => drop(ways.insert(format!("{how:?}"))),
        Stmt::Store(s) if s.array == array => other = true,
        Stmt::Let(v) => other |= matches!(source.op(*v), Op::Load(a, _) if *a == array),
        _ => {}
    });
    ways.len() == 1 && !other
}

/// Refuses a parallel loop in which iterations share the minima or maxima of an array that it uses in another way too.
pub(crate) fn check(source: &Program, par: &Par, array: ArrayId) -> Result<(), Error> {
    if extremes_alone(source, par, array) {
        return Ok(());
    }
    let name = &source.array(array).name;
    Err(Error::Unsupported {
        program: source.name.clone(),
        what: format!(
            "a parallel loop that takes minima or maxima of `{name}` and uses it in another way too: use a second loop"
        ),
    })
}
