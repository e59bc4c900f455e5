//! The first addition to a shadow that stands for zeros: a store, where every element has one.

use ebbtide_ir::{ArrayId, Block, Combine, Op, Program, Range, Stmt, walk, written};

/// Turns the first addition of each iteration to its own element of a shadow into a store: then nothing need fill the shadow
/// before. Says whether it could; the iterations must cover the shadow.
pub(super) fn store_first(program: &Program, ranges: &[Range], body: &mut Block, shadow: ArrayId) -> bool {
    let Some(first) = body.iter_mut().find(|stmt| touches(program, stmt, shadow)) else { return false };
    match first {
        Stmt::Update(Combine::Add, store)
            if store.array == shadow
                && store.index.as_slice().iter().eq(ranges.iter().map(|range| &range.var)) =>
        {
            let store = store.clone();
            *first = Stmt::Store(store);
            true
        }
        _ => false,
    }
}

fn touches(program: &Program, stmt: &Stmt, array: ArrayId) -> bool {
    let one = std::slice::from_ref(stmt);
    let mut loads = false;
    walk(one, &mut |inner| {
        loads |= matches!(inner, Stmt::Let(v) if matches!(program.op(*v), Op::Load(a, _) if *a == array));
    });
    loads || written(one).contains(&array)
}
