//! Ordered sums at shared elements, by all threads of a grid. Input: a parallel loop; output: the place of each term that its
//! iterations note.
//!
//! Iterations run side by side and note what they would combine, and where: a key and a value each, in the order of the
//! iterations. Then the notes are sorted by key, without changing the order of equal keys, and one thread combines the terms
//! of an element (`ordered_scatter.cu`). So each element sees its terms as one thread would bring them, and no two threads
//! meet at one.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Block, Combine, Facts, LoopKind, Op, Ordering, Par, ParFacts, Program, Sharing, Stmt, Store,
    Type, ValueId, walk,
};

/// How many terms are noted before they are combined; `EB_STAGE` of the prelude.
pub(crate) const STAGE: usize = 524_288;

/// The words in which terms are noted and sorted: keys, terms, sorted keys, two places each, and what blocks count.
pub const STAGING_WORDS: usize = 4 * STAGE + (512 * 512 + 512) / 2;

/// The most terms of one iteration that are noted; where there may be more, one thread runs the loop.
const MOST_TERMS: usize = 1024;

/// The bytes in which a grid notes terms of ordered sums while it runs the program.
pub fn staging_bytes(program: &Program, facts: &Facts) -> u64 {
    let mut words = 0;
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt
            && notes(program, facts, par).is_some()
        {
            words = STAGING_WORDS as u64;
        }
    });
    8 * words
}

/// The loops that one thread of a grid runs, in which others wait: their updates are made in order, and cannot be noted.
pub fn loops_on_one_thread<'p>(program: &'p Program, facts: &Facts) -> Vec<&'p Par> {
    let mut loops = Vec::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt
            && !scattered(program, facts, par).1
            && notes(program, facts, par).is_none()
        {
            loops.push(par);
        }
    });
    loops
}

/// The updates of one array.
pub(crate) struct Notes<'s> {
    pub array: ArrayId,
    pub how: Combine,
    /// How many terms an iteration notes at most.
    pub each: usize,
    /// May an iteration note fewer?
    pub fewer: bool,
    /// Each update, and the place of its term among those of an iteration.
    pub updates: Vec<(&'s Store, Place)>,
}

/// The place of a term among those of an iteration: one after the `first` ones, and after those of the iterations of the loops
/// around it that ended before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// By loop, from the outermost: its variable, where it begins, and how many terms an iteration has.
    pub loops: Vec<(ValueId, i64, usize)>,
    pub first: usize,
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

/// The updates at shared elements of a loop that are made in order, by array; `None` where there are none, where it is not
/// known how often an iteration makes one, and where sums are taken leaf by leaf as well.
pub(crate) fn notes<'s>(program: &Program, facts: &Facts, par: &'s Par) -> Option<Vec<Notes<'s>>> {
    let (arrays, any_order) = scattered(program, facts, par);
    let facts = facts.pars.get(&par.id)?;
    if any_order || facts.sharing.values().any(|sharing| *sharing == Sharing::Reduce) {
        return None;
    }
    let mut total = 0;
    let mut all = Vec::new();
    for array in arrays {
        if program.array(array).ty == Type::Bool {
            return None;
        }
        let updates = Updates { program, facts, array };
        let each = updates.count(&par.body)?;
        total += each;
        let mut notes = Notes { array, how: Combine::Add, each, fewer: false, updates: Vec::new() };
        updates.place(&par.body, &[], 0, &mut notes)?;
        all.push(notes);
    }
    (total <= MOST_TERMS).then_some(all)
}

/// The ordered updates of one array.
struct Updates<'a> {
    program: &'a Program,
    facts: &'a ParFacts,
    array: ArrayId,
}

impl Updates<'_> {
    /// How many of them a run of the block makes at most.
    fn count(&self, block: &Block) -> Option<usize> {
        let mut count = 0_usize;
        for stmt in block {
            count = count.checked_add(match stmt {
                Stmt::Update(_, store) => usize::from(self.is_one(store)),
                Stmt::If(branch) => self.count(&branch.then)? + self.count(&branch.otherwise)?,
                Stmt::Loop(l) => match (&l.kind, self.count(&l.body)?) {
                    (LoopKind::While { head, .. }, 0) if self.count(head)? == 0 => 0,
                    (LoopKind::For { .. } | LoopKind::Forever, 0) => 0,
                    (LoopKind::For { from, to, .. }, inside) => {
                        inside.checked_mul(self.between(*from, *to)?.1)?
                    }
                    _ => return None,
                },
                _ => 0,
            })?;
        }
        Some(count)
    }

    /// Gives each of them its place: after the `first` ones and what `around` says of the loops around the block.
    fn place<'s>(
        &self,
        block: &'s Block,
        around: &[(ValueId, i64, usize)],
        mut first: usize,
        notes: &mut Notes<'s>,
    ) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::Update(how, store) if self.is_one(store) => {
                    if !notes.updates.is_empty() && notes.how != *how {
                        return None;
                    }
                    notes.how = *how;
                    notes.updates.push((store, Place { loops: around.to_vec(), first }));
                    first += 1;
                }
                Stmt::If(branch) => {
                    for block in [&branch.then, &branch.otherwise] {
                        self.place(block, around, first, notes)?;
                        let count = self.count(block)?;
                        notes.fewer |= count > 0;
                        first += count;
                    }
                }
                Stmt::Loop(l) => {
                    let inside = self.count(&l.body)?;
                    if inside == 0 {
                        continue;
                    }
                    let LoopKind::For { var, from, to } = &l.kind else { return None };
                    let (begin, trips) = self.between(*from, *to)?;
                    let around: Vec<_> = around.iter().copied().chain([(*var, begin, inside)]).collect();
                    self.place(&l.body, &around, first, notes)?;
                    notes.fewer |= l.until.is_some();
                    first += inside * trips;
                }
                _ => {}
            }
        }
        Some(())
    }

    fn is_one(&self, store: &Store) -> bool {
        store.array == self.array && self.facts.of(store) == Sharing::Scatter
    }

    /// Where a loop between two literals begins, and how many iterations it has.
    fn between(&self, from: ValueId, to: ValueId) -> Option<(i64, usize)> {
        let number = |v| match self.program.op(v) {
            Op::Literal(literal) => Some(literal.bits() as i64),
            _ => None,
        };
        let (from, to) = (number(from)?, number(to)?);
        Some((from, usize::try_from(to.checked_sub(from)?.max(0)).ok()?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{parse, verify};

    use super::loops_on_one_thread;

    #[test]
    fn the_prelude_knows_as_many_terms() {
        assert!(
            include_str!("../prelude/ordered_scatter.cu").contains(&format!("EB_STAGE = {},", super::STAGE))
        );
    }

    /// `for i in par(..) { for j in 0..times { y[k[i]] += x[i]; } }`.
    fn scatter(times: &str) -> usize {
        let text = format!(
            "program p(k: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>) {{
                for i in par(0..x.len()) {{
                    for j in 0..{times} {{
                        y[k[i] as usize] += x[i];
                    }}
                }}
            }}"
        );
        let program = parse(&text).unwrap();
        let facts = verify(&program).unwrap();
        loops_on_one_thread(&program, &facts).len()
    }

    #[test]
    fn one_thread_runs_loops_whose_iterations_add_as_often_as_data_say() {
        assert_eq!([scatter("8"), scatter("2000"), scatter("x.len()")], [0, 1, 1]);
    }
}
