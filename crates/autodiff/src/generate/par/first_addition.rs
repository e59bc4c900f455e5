//! The first addition to a shadow that stands for zeros: a store, where every element has one.

use ebbtide_ir::{ArrayId, Block, Combine, Indices, Op, Program, Range, Stmt, walk};

/// Turns the first addition of each iteration to its own element of a shadow into a store: then nothing need fill the shadow
/// before. Says whether it could; the iterations must cover the shadow. None of them may touch an element of another one, which
/// comes sooner or later.
pub(super) fn store_first(program: &Program, ranges: &[Range], body: &mut Block, shadow: ArrayId) -> bool {
    let is_own = |index: &Indices| index.as_slice().iter().eq(ranges.iter().map(|range| &range.var));
    let mut all_own = true;
    walk(body, &mut |stmt| all_own &= accesses(program, stmt, shadow).is_none_or(|index| is_own(&index)));
    let Some(first) = body.iter_mut().find(|stmt| touches(program, stmt, shadow)).filter(|_| all_own) else {
        return false;
    };
    let Stmt::Update(Combine::Add, store) = first else { return false };
    let store = store.clone();
    *first = Stmt::Store(store);
    true
}

/// The element of an array that a statement itself loads, stores or updates.
fn accesses(program: &Program, stmt: &Stmt, array: ArrayId) -> Option<Indices> {
    match stmt {
        Stmt::Let(v) => match *program.op(*v) {
            Op::Load(a, index) if a == array => Some(index),
            _ => None,
        },
        Stmt::Store(s) | Stmt::Update(_, s) if s.array == array => Some(s.index),
        _ => None,
    }
}

/// Does a statement, or one inside it, touch the array?
fn touches(program: &Program, stmt: &Stmt, array: ArrayId) -> bool {
    let mut found = false;
    walk(std::slice::from_ref(stmt), &mut |inner| found |= accesses(program, inner, array).is_some());
    found
}
