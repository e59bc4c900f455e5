//! Elements of an array that the program writes before anything reads them.
//!
//! - Input: a trajectory of a loop at the top level that no statement before the loop touches.
//! - Output: a part of the array that the loop writes from end to end.
//! - Invariant: nothing reads an element of that part before the loop has written it, so that a working copy need not hold it at the
//!   start. Iterations that are run again find what they found: rows that are read were written by earlier ones.
//!
//! The part is that of one write that every iteration makes: of `x[[t + 1, i]]` for `t` in `0..steps` and `i` in `1..n - 1` rows `1` to
//! `steps` of columns `1` to `n - 2`; of `x[(t + 1) * n + i]` the stripes between.

use ebbtide_ir::{
    Affine, Affines, ArrayId, Indices, Loop, LoopKind, Par, Program, Range, Stmt, ValueId,
    depends_on_arguments_alone,
};

use crate::analysis::effects::{changes, reads_of};
use crate::analysis::subarray::{Bounds, Stripes, Subarray};
use crate::analysis::top_level::TopLevel;

/// The part of a trajectory that the loop at `position` writes from end to end; `None` where none is found, or something before the
/// loop touches the array.
pub(crate) fn written_first(
    source: &Program,
    affines: &Affines,
    position: TopLevel,
    array: ArrayId,
) -> Option<Subarray> {
    let before = position.before(source).to_vec();
    if reads_of(source, &before).contains(&array) || changes(source, &before).contains(&array) {
        return None;
    }
    let Some(Stmt::Loop(l)) = position.stmt(source) else { return None };
    let time = counted(source, l)?;
    let in_par = |par: &Par| {
        par.body.iter().find_map(|stmt| match stmt {
            Stmt::Store(s) if s.array == array => {
                let in_box = || bounds(source, affines, (&time, &par.ranges), s.index).map(Subarray::Box);
                in_box().or_else(|| {
                    stripes(source, affines, (&time, &par.ranges), s.index).map(Subarray::Stripes)
                })
            }
            _ => None,
        })
    };
    l.body.iter().find_map(|stmt| if let Stmt::Par(par) = stmt { in_par(par) } else { None })
}

/// The range of a loop that counts, with bounds that are known before the program starts.
pub(crate) fn counted(source: &Program, l: &Loop) -> Option<Range> {
    let known = |v: ValueId| depends_on_arguments_alone(source, v);
    match l.kind {
        LoopKind::For { var, from, to } if l.until.is_none() && known(from) && known(to) => {
            Some(Range { var, from, to })
        }
        _ => None,
    }
}

/// Where an index lies when the loops run through their ranges, if each variable runs through a dimension of its own.
fn bounds(
    source: &Program,
    affines: &Affines,
    (time, ranges): (&Range, &[Range]),
    index: Indices,
) -> Option<Vec<(usize, Bounds)>> {
    let mut left: Vec<&Range> = [time].into_iter().chain(ranges).collect();
    let known = |form: &Affine| form.terms.iter().all(|(atom, _)| depends_on_arguments_alone(source, *atom));
    let mut bounds = Vec::new();
    for v in index.as_slice() {
        let form = affines.form(*v);
        let own = left.iter().position(|range| form.coefficient(range.var) == 1);
        bounds.push(match own.map(|own| left.remove(own)) {
            Some(range) => {
                let rest = form.without(range.var);
                Bounds {
                    from: affines.form(range.from).add_scaled(&rest, 1)?,
                    to: affines.form(range.to).add_scaled(&rest, 1)?,
                }
            }
            None => Bounds {
                from: form.clone(),
                to: form.add_scaled(&Affine { terms: Vec::new(), constant: 1 }, 1)?,
            },
        });
    }
    let all_known = bounds.iter().all(|b| known(&b.from) && known(&b.to));
    (left.is_empty() && all_known).then(|| bounds.into_iter().enumerate().collect())
}

/// The stripes that an index of an array of rank 1 runs through.
pub(crate) fn stripes(
    source: &Program,
    affines: &Affines,
    (time, ranges): (&Range, &[Range]),
    index: Indices,
) -> Option<Stripes> {
    let (&[index], [range]) = (index.as_slice(), ranges) else { return None };
    Stripes::of(source, affines, (time, range), index)
}
