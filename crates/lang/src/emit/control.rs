//! Branches and loops.

use ebbtide_ir::{Binary, ReverseHint};

use super::small::constant_index;
use crate::cx::Cx;
use crate::small::{Value, from_ids, variables};
use crate::value::{Expr, Index, Local, Truth};

/// `if condition {`
#[track_caller]
pub fn begin_if<C: Truth>(cx: &Cx, condition: Expr<C>) {
    cx.emit(|b| b.begin_if(condition.id));
}

/// `} else {`
#[track_caller]
pub fn begin_else(cx: &Cx) {
    cx.emit(|b| b.begin_else());
}

/// The end of an `if` used as a value, whose arms set `slot`.
#[track_caller]
pub fn end_value_if<T: Value>(cx: &Cx, slot: &Local<T>) -> Expr<T> {
    from_ids(&cx.emit(|b| b.end_values_if(&variables(slot))))
}

/// The end of the `if` of `left && right`, which sets `slot` to the right side.
#[track_caller]
pub fn end_and(cx: &Cx, slot: &Local<bool>, left: Expr<bool>) -> Expr<bool> {
    end_asked(cx, slot, left, Binary::And)
}

/// The end of the `if` of `left || right`, which sets `slot` to the right side.
#[track_caller]
pub fn end_or(cx: &Cx, slot: &Local<bool>, left: Expr<bool>) -> Expr<bool> {
    end_asked(cx, slot, left, Binary::Or)
}

#[track_caller]
fn end_asked(cx: &Cx, slot: &Local<bool>, left: Expr<bool>, op: Binary) -> Expr<bool> {
    Expr::new(cx.emit(|b| b.end_asked(slot.id, left.id, op)))
}

/// The end of an `if`.
#[track_caller]
pub fn end_if(cx: &Cx) {
    cx.emit(|b| b.end_if());
}

/// `for name in from..to {`
#[track_caller]
pub fn begin_for<F: Index, T: Index>(cx: &Cx, name: &str, from: Expr<F>, to: Expr<T>) -> Expr<usize> {
    let var = cx.emit(|b| b.begin_for(name, from.id, to.id));
    cx.note_loop(var, from.id, to.id);
    Expr::new(var)
}

/// `while`; the condition comes next.
#[track_caller]
pub fn begin_while(cx: &Cx) {
    cx.note_conditional_loop();
    cx.emit(|b| b.begin_while());
}

/// `condition {`, after [`begin_while`].
#[track_caller]
pub fn while_condition<C: Truth>(cx: &Cx, condition: Expr<C>) {
    cx.emit(|b| b.while_condition(condition.id));
}

/// `loop {`
#[track_caller]
pub fn begin_loop(cx: &Cx) {
    cx.note_conditional_loop();
    cx.emit(|b| b.begin_loop());
}

/// The end of a sequential loop.
#[track_caller]
pub fn end_loop(cx: &Cx) {
    cx.emit(|b| b.end_loop(None));
}

/// `if condition { break; }` and the end of a sequential loop.
#[track_caller]
pub fn end_loop_if<C: Truth>(cx: &Cx, condition: Expr<C>) {
    cx.emit(|b| b.end_loop(Some(condition.id)));
}

/// `#[reverse(..)]` before a sequential loop.
#[track_caller]
pub fn reverse(cx: &Cx, hint: ReverseHint) {
    cx.emit(|b| b.reverse(hint));
}

/// `#[relaxed]` before a parallel loop.
#[track_caller]
pub fn relaxed(cx: &Cx) {
    cx.emit(|b| b.relaxed());
}

/// `for names in par(from..to, …) {`
#[track_caller]
pub fn begin_par<const N: usize>(
    cx: &Cx,
    names: [&str; N],
    ranges: [(Expr<usize>, Expr<usize>); N],
) -> [Expr<usize>; N] {
    let vars = cx.emit(|b| {
        let ranges: Vec<_> =
            names.iter().zip(&ranges).map(|(name, (from, to))| (*name, from.id, to.id)).collect();
        b.begin_par(&ranges)
    });
    for (var, (from, to)) in vars.iter().zip(&ranges) {
        cx.note_loop(*var, from.id, to.id);
    }
    // The builder gives one variable per range.
    std::array::from_fn(|k| Expr::new(vars[k]))
}

/// The end of a parallel loop.
#[track_caller]
pub fn end_par(cx: &Cx) {
    cx.emit(|b| b.end_par());
}

/// A condition of `&&` or `||`.
pub fn truth<C: Truth>(condition: Expr<C>) -> Expr<bool> {
    Expr::new(condition.id)
}

/// `assert!(condition, "text");`
#[track_caller]
pub fn assert<C: Truth>(cx: &Cx, condition: Expr<C>, text: &str) {
    cx.emit(|b| b.assert(condition.id, text));
}

/// The bounds of a range, where they are constants.
pub(crate) fn constant_range(cx: &Cx, from: Expr<usize>, to: Expr<usize>) -> Option<(i64, i64)> {
    cx.emit(|b| constant_index(b.program(), from.id).zip(constant_index(b.program(), to.id)))
}

/// A constant of the index type.
#[track_caller]
pub(crate) fn index_literal(cx: &Cx, value: i64) -> Expr<usize> {
    Expr::new(cx.emit(|b| b.literal(ebbtide_ir::Literal::index(value))))
}

/// A loop over so few constants is unrolled where its variable chooses among the parts of a small value.
const UNROLLED: i64 = 32;

/// But not if that makes more loops than this whose number of iterations is data. Each keeps all its indices among the parts, since
/// these are data too, and each needs a record of its own in a gradient: an insertion sort of nine would have eight of them.
const REPEATED: i64 = 4;

/// `for name in from..to { body }`, with no `break` in it.
#[track_caller]
pub fn for_range(cx: &Cx, name: &str, from: Expr<usize>, to: Expr<usize>, mut body: impl FnMut(Expr<usize>)) {
    let (bounds, before) = (constant_range(cx, from, to), cx.emit(|b| b.mark()));
    let loops = cx.conditional_loops();
    let var = begin_for(cx, name, from, to);
    body(var);
    end_loop(cx);
    if !cx.take_computed_index(var.id) {
        return;
    }
    let Some((first, end)) = bounds else {
        // Where a loop around this one is unrolled, its bounds may be constants.
        cx.note_computed_index(from.id);
        cx.note_computed_index(to.id);
        return;
    };
    let (count, loops) = (end.saturating_sub(first), (cx.conditional_loops() - loops) as i64);
    if count > UNROLLED || count.saturating_mul(loops) > REPEATED || !cx.emit(|b| b.rewind(&before)) {
        return;
    }
    // The numbers of values are given anew.
    cx.forget_loops();
    for k in first..end {
        body(index_literal(cx, k));
    }
}
