//! Loops over the elements of an array outside of a part of it.

use ebbtide_ir::{
    Affine, ArrayId, Binary, Branch, Compare, Indices, Op, Par, Program, Range, Safety, Stmt, ValueId,
};

use crate::analysis::polynomial::Polynomial;
use crate::analysis::subarray::{Bounds, Stripes, Subarray};
use crate::normalize::early::early;
use crate::plan::scratch_arrays;
use crate::writer::{Writer, within};

/// Writes parallel loops that do something with each element outside of a part of an array, with some of them more than once. The
/// part may lie outside of the array, wholly or in part. `of` is the array of the source that has the same shape.
pub(crate) fn outside(
    source: &Program,
    w: &mut Writer,
    (array, of): (ArrayId, ArrayId),
    part: &Subarray,
    each: impl FnMut(&mut Writer, Indices),
) {
    match part {
        Subarray::Box(bounds) => outside_box(source, w, (array, of), bounds, each),
        Subarray::Stripes(stripes) => outside_stripes(source, w, array, stripes, each),
    }
}

/// Before and behind the box in each dimension.
fn outside_box(
    source: &Program,
    w: &mut Writer,
    (array, of): (ArrayId, ArrayId),
    bounds: &[(usize, Bounds)],
    mut each: impl FnMut(&mut Writer, Indices),
) {
    let zero = w.index(0);
    let extents: Vec<ValueId> = (0..w.program.array(array).rank).map(|d| w.dim(array, d)).collect();
    for (d, bounds) in bounds.iter().map(|(d, bounds)| (*d, bounds)) {
        let before = |w: &mut Writer| {
            let from = known(source, w, &bounds.from);
            (zero, w.binary(Binary::Min, from, extents[d]))
        };
        let behind = |w: &mut Writer| {
            let to = known(source, w, &bounds.to);
            (w.binary(Binary::Max, to, zero), extents[d])
        };
        let begins = bounds.from.as_constant().is_some_and(|from| from <= 0);
        let before = (!begins).then(|| before(w));
        let is_extent = |v: ValueId| *source.op(v) == Op::Dim(of, d as u8);
        let behind = (!bounds.to.as_atom().is_some_and(is_extent)).then(|| behind(w));
        for (from, to) in before.into_iter().chain(behind) {
            let mut ranges = Vec::new();
            for (k, extent) in extents.iter().enumerate() {
                let var = w.loop_var(&format!("k{k}"));
                let (from, to) = if k == d { (from, to) } else { (zero, *extent) };
                ranges.push(Range { var, from, to });
            }
            let element: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
            let Some(index) = Indices::new(&element) else { return };
            let body = w.block(|w| each(w, index));
            let id = w.new_par();
            w.push(Stmt::Par(Par::over(id, ranges, body)));
        }
    }
}

/// Before the first stripe, between them, and behind the last one. Where there is none, everywhere.
fn outside_stripes(
    source: &Program,
    w: &mut Writer,
    array: ArrayId,
    stripes: &Stripes,
    mut each: impl FnMut(&mut Writer, Indices),
) {
    let written =
        |w: &mut Writer, p: &Polynomial| scratch_arrays::write(w, p, &mut |w, v| early(source, w, v));
    let [stride, low, high] = [&stripes.stride, &stripes.low, &stripes.high].map(|p| written(w, p));
    let (first, end) = (early(source, w, stripes.time.from), early(source, w, stripes.time.to));
    let (zero, one, extent) = (w.index(0), w.index(1), w.dim(array, 0));
    let some = w.compare(Compare::Lt, first, end);
    let last = w.sub(end, one);
    let bound = |w: &mut Writer, t: ValueId, by: ValueId| {
        let start = w.mul(t, stride);
        w.add(start, by)
    };
    let (before, behind) = (bound(w, first, low), bound(w, last, high));
    let before = w.binary(Binary::Min, before, extent);
    let behind = w.binary(Binary::Max, behind, zero);
    let behind = w.select(some, behind, zero);
    for (from, to) in [(zero, before), (behind, extent)] {
        let var = w.loop_var("k0");
        let Some(index) = Indices::new(&[var]) else { return };
        let body = w.block(|w| each(w, index));
        let id = w.new_par();
        w.push(Stmt::Par(Par::over(id, vec![Range { var, from, to }], body)));
    }
    let length = w.sub(high, low);
    let gap = w.sub(stride, length);
    let (stripe, place) = (w.loop_var("t"), w.loop_var("k"));
    let body = w.block(|w| {
        let start = bound(w, stripe, high);
        let element = w.add(start, place);
        let condition = within(w, element, zero, extent);
        let then = w.block(|w| {
            if let Some(index) = Indices::new(&[element]) {
                each(w, index);
            }
        });
        w.push(Stmt::If(Branch { condition, then, otherwise: Vec::new() }));
    });
    let ranges = [(stripe, first, last), (place, zero, gap)].map(|(var, from, to)| Range { var, from, to });
    let id = w.new_par();
    w.push(Stmt::Par(Par { safety: Safety::Proved, ..Par::over(id, ranges.to_vec(), body) }));
}

/// A sum of values that are known before the program starts.
fn known(source: &Program, w: &mut Writer, form: &Affine) -> ValueId {
    let mut total = None;
    for (atom, coefficient) in &form.terms {
        let mut term = early(source, w, *atom);
        if *coefficient != 1 {
            let factor = w.index(*coefficient);
            term = w.mul(factor, term);
        }
        total = Some(total.map_or(term, |total| w.add(total, term)));
    }
    match total {
        Some(total) if form.constant == 0 => total,
        Some(total) => {
            let constant = w.index(form.constant);
            w.add(total, constant)
        }
        None => w.index(form.constant),
    }
}
