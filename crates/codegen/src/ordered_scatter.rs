//! Ordered sums at shared elements, by all threads of a grid.
//!
//! Iterations run side by side and note what they would combine, and where: a key and a value each, in the order of the
//! iterations. Then every warp reads all keys of the batch and combines, in that order, those that fall on elements of its
//! own. So each element sees its terms as one thread would bring them, and no two warps meet at one.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Combine, Facts, Ordering, Par, Program, Sharing, Stmt, Store, Type, walk};

use crate::c_types::c_type;
use crate::unit::{Text, line};

/// How many iterations are noted before what they noted is combined; `EB_STAGE` of the prelude.
pub const STAGE: usize = 65536;

/// The bytes in which a grid notes terms of ordered sums while it runs the program.
pub fn staging_bytes(program: &Program, facts: &Facts) -> u64 {
    let mut most = 0;
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            let notes = notes(program, facts, par).unwrap_or_default();
            most = most.max(notes.iter().map(|n| n.updates.len()).sum());
        }
    });
    (16 * STAGE * most) as u64
}

/// The updates of one array, in source order.
struct Notes<'s> {
    array: ArrayId,
    how: Combine,
    updates: Vec<&'s Store>,
}

/// The arrays into whose shared elements iterations combine, and whether they can do so in any order.
pub(crate) fn scattered(program: &Program, facts: &Facts, par: &Par) -> (BTreeSet<ArrayId>, bool) {
    let facts = facts.pars.get(&par.id).cloned().unwrap_or_default();
    let (mut arrays, mut any_order) = (BTreeSet::new(), true);
    walk(&par.body, &mut |stmt| {
        if let Stmt::Update(how, s) = stmt
            && facts.of(s) == Sharing::Scatter
        {
            arrays.insert(s.array);
            any_order &= match program.array(s.array).ty {
                Type::I32 | Type::U32 | Type::I64 | Type::Index => true,
                Type::F32 | Type::F64 => *how == Combine::Add && par.ordering == Ordering::Relaxed,
                Type::Bool => false,
            };
        }
    });
    (arrays, any_order)
}

/// The updates at shared elements of a loop that are made in order, by array; `None` where there are none, where an
/// iteration may make one many times, and where sums are taken leaf by leaf as well.
fn notes<'s>(program: &Program, facts: &Facts, par: &'s Par) -> Option<Vec<Notes<'s>>> {
    if scattered(program, facts, par).1 {
        return None;
    }
    let facts = facts.pars.get(&par.id)?;
    let shared = |store: &Store| facts.of(store) == Sharing::Scatter;
    let mut many = facts.sharing.values().any(|sharing| *sharing == Sharing::Reduce);
    let mut arrays: BTreeMap<ArrayId, Notes> = BTreeMap::new();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Loop(l) => walk(&l.body, &mut |inner| {
            many |= matches!(inner, Stmt::Update(_, s) if shared(s));
        }),
        Stmt::Update(how, s) if shared(s) => {
            let notes =
                arrays.entry(s.array).or_insert(Notes { array: s.array, how: *how, updates: Vec::new() });
            many |= notes.how != *how || program.array(s.array).ty == Type::Bool;
            notes.updates.push(s);
        }
        _ => {}
    });
    (!many).then(|| arrays.into_values().collect())
}

impl Text<'_> {
    /// Prints a loop whose sums at shared elements keep their order; says so where it cannot.
    pub fn staged(&mut self, par: &Par, exit: usize) -> bool {
        let Some(notes) = notes(self.program, self.facts, par) else { return false };
        let total: usize = notes.iter().map(|n| n.updates.len()).sum();
        self.notes = self.notes.max(total);
        let mut before = 0;
        for (n, note) in notes.iter().enumerate() {
            let (t, each) = (c_type(self.program.array(note.array).ty), note.updates.len());
            line!(self, "nx *const keys{n} = (nx *)f->stage + EB_STAGE * {before};");
            line!(self, "{t} *const terms{n} = ({t} *)(f->stage + EB_STAGE * {});", total + before);
            for (k, update) in note.updates.iter().enumerate() {
                self.staged.insert(*update, (n, format!("[at * {each} + {k}]")));
            }
            before += each;
        }
        let inside = self.interval(par, &[]);
        line!(self, "const i64 iterations = eb_times(rows, row);");
        line!(self, "for (i64 batch = 0; batch < iterations; batch += EB_STAGE) {{");
        line!(self, "const i64 noted = eb_min(iterations - batch, EB_STAGE);");
        line!(self, "for (i64 at = f->thread; at < noted; at += f->threads) {{");
        line!(self, "const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        for (n, note) in notes.iter().enumerate() {
            let each = note.updates.len();
            for (k, update) in note.updates.iter().enumerate() {
                // What stands under a condition may note nothing.
                if !par.body.iter().any(|s| matches!(s, Stmt::Update(_, s) if std::ptr::eq(s, *update))) {
                    line!(self, "keys{n}[at * {each} + {k}] = -1;");
                }
            }
        }
        self.row(par, &inside);
        self.iteration(par, &[], exit, &inside);
        line!(self, "}}");
        line!(self, "exit{exit}: if (eb_barrier(f)) goto leave;");
        for (n, note) in notes.iter().enumerate() {
            let ty = self.program.array(note.array).ty;
            let (t, each) = (c_type(ty), note.updates.len());
            let combined = self.combine(note.how, ty, 1, "sum", "term");
            line!(
                self,
                "eb_combine_own(f, a{}, keys{n}, terms{n}, noted * {each}, [](const {t} sum, const {t} term) {{ return {combined}; }});",
                note.array.index()
            );
        }
        // The next batch is noted where this one was.
        line!(self, "if (batch + EB_STAGE < iterations && eb_barrier(f)) goto leave;");
        line!(self, "}}");
        self.staged.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_prelude_knows_as_many_iterations() {
        assert!(include_str!("prelude.cu").contains(&format!("EB_STAGE = {} ", super::STAGE)));
    }
}
