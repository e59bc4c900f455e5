//! Ordered sums at shared elements, by all threads of a grid. Input: a parallel loop; output: the place of each term that its
//! iterations note.
//!
//! Iterations run side by side and note what they would combine, and where: a key and a value each, in the order of the
//! iterations. Then the notes are sorted by key, without changing the order of equal keys, and one thread combines the terms
//! of an element (`ordered_scatter.cu`). So each element sees its terms as one thread would bring them, and no two threads
//! meet at one.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Block, Combine, Facts, Indices, LoopKind, Op, Ordering, Par, ParFacts, Program, Sharing, Stmt,
    Store, Type, ValueId, walk,
};

use crate::analysis::kept_terms::{TERM_WORDS, WINDOW, adds_once, keeps_terms};
use crate::analysis::names::{reductions, sharing};
use crate::analysis::shared_updates::{Tables, tables};
use crate::analysis::term_counts::counting;

/// How many terms are noted before they are combined, where places are narrow; `EB_STAGE` of the prelude.
const STAGE: usize = 2_097_152;

/// The most arrays into which an iteration notes terms; `EB_TABLES` of the prelude.
const TABLES: usize = 32;

/// The words in which terms are noted and sorted: keys, terms, sorted keys, two places each, what blocks count, and how far a
/// batch of iterations came, and whether keys are sorted.
pub const STAGING_WORDS: usize = 4 * STAGE + (512 * 512 + 512) / 2 + 1 + TABLES + 1;

/// Where iterations note more terms at most, they are counted before: a batch has room for few such iterations.
const MOST_TERMS: usize = 1024;

/// The bytes in which a grid notes terms of ordered sums, and keeps those of others, while it runs the program.
pub fn staging_bytes(program: &Program, facts: &Facts) -> u64 {
    let (mut noted, mut kept) = (0, 0);
    walk(&program.body, &mut |stmt| {
        let Stmt::Par(par) = stmt else { return };
        let notes = notes(program, facts, par).is_some();
        if notes {
            noted = STAGING_WORDS;
        }
        if notes || keeps_terms(program, facts, par) {
            kept = kept.max(reductions(facts, par).len() * TERM_WORDS);
        }
    });
    8 * (noted + kept) as u64
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

impl Notes {
    /// How many terms an iteration notes in all tables; where data say, a guess.
    pub fn terms(&self) -> usize {
        const GUESS: usize = 8;
        match &self.counts {
            Counts::AtMost(each) => each.iter().sum(),
            Counts::Computed(_) => GUESS * self.tables.len(),
        }
    }
}

/// What the iterations of a loop note.
pub(crate) struct Notes {
    /// By array: how its terms are combined.
    pub tables: Vec<(ArrayId, Combine)>,
    /// The table of each update that is noted.
    pub updates: BTreeMap<(ArrayId, Indices), usize>,
    pub counts: Counts,
}

/// How many terms an iteration notes.
pub(crate) enum Counts {
    /// So many at most, by table.
    AtMost(Vec<usize>),
    /// As often as these statements come to an update.
    Computed(Block),
}

/// The arrays into whose shared elements iterations combine, and whether they can do so in any order.
pub(crate) fn scattered(program: &Program, facts: &Facts, par: &Par) -> (BTreeSet<ArrayId>, bool) {
    let facts = sharing(facts, par);
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

/// The updates at shared elements of a loop that are made in order; `None` where there are none, where it cannot be known
/// beforehand how often an iteration makes one, and where it has several terms of another sum, which is taken leaf by leaf.
pub(crate) fn notes(program: &Program, facts: &Facts, par: &Par) -> Option<Notes> {
    let (arrays, any_order) = scattered(program, facts, par);
    if any_order
        || arrays.len() > TABLES
        || arrays.iter().any(|array| program.array(*array).ty == Type::Bool)
        || !adds_once(facts, par)
    {
        return None;
    }
    let facts = facts.pars.get(&par.id)?;
    let noted = tables(facts, par);
    if !noted.are_apart() {
        return None;
    }
    let Tables { tables, updates } = noted;
    let each: Option<Vec<usize>> =
        tables.iter().map(|(array, _)| Updates { program, facts, array: *array }.count(&par.body)).collect();
    let few = |each: &Vec<usize>| each.iter().try_fold(0, |sum: usize, n| sum.checked_add(*n));
    let counts = match each.filter(|each| few(each).is_some_and(|total| total <= MOST_TERMS)) {
        Some(each) => Counts::AtMost(each),
        None => Counts::Computed(counting(program, facts, par)?),
    };
    Some(Notes { tables, updates, counts })
}

/// How many iterations of a loop are in one batch, where that is a number and places are narrow.
pub(crate) fn batch(program: &Program, facts: &Facts, par: &Par) -> Option<usize> {
    batch_of(&notes(program, facts, par)?, !reductions(facts, par).is_empty())
}

/// The same of a loop that notes these terms, with sums over its iterations or without.
pub(crate) fn batch_of(notes: &Notes, sums: bool) -> Option<usize> {
    let Counts::AtMost(each) = &notes.counts else { return None };
    let most = STAGE / each.iter().sum::<usize>().max(1);
    Some(if sums { most.min(WINDOW) } else { most })
}

/// How many terms an iteration adds to elements of an array that others share, at most, where that is a number.
pub(crate) fn most_terms(program: &Program, facts: &ParFacts, par: &Par, array: ArrayId) -> Option<usize> {
    Updates { program, facts, array }.count(&par.body)
}

/// The ordered updates of one array.
struct Updates<'a> {
    program: &'a Program,
    facts: &'a ParFacts,
    array: ArrayId,
}

impl Updates<'_> {
    /// How many of them a run of the block makes at most, where that is a number.
    fn count(&self, block: &Block) -> Option<usize> {
        let mut count = 0_usize;
        for stmt in block {
            count = count.checked_add(match stmt {
                Stmt::Update(_, store) => usize::from(self.is_one(store)),
                Stmt::If(branch) => self.count(&branch.then)?.checked_add(self.count(&branch.otherwise)?)?,
                Stmt::Loop(l) => match (&l.kind, self.count(&l.body)?) {
                    (LoopKind::While { head, .. }, 0) if self.count(head)? == 0 => 0,
                    (LoopKind::For { .. } | LoopKind::Forever, 0) => 0,
                    (LoopKind::For { from, to, .. }, inside) => {
                        inside.checked_mul(self.between(*from, *to)?)?
                    }
                    _ => return None,
                },
                _ => 0,
            })?;
        }
        Some(count)
    }

    fn is_one(&self, store: &Store) -> bool {
        store.array == self.array && self.facts.of(store) == Sharing::Scatter
    }

    /// How many iterations a loop between two literals has.
    fn between(&self, from: ValueId, to: ValueId) -> Option<usize> {
        let number = |v| match self.program.op(v) {
            Op::Literal(literal) => Some(literal.bits() as i64),
            _ => None,
        };
        let (from, to) = (number(from)?, number(to)?);
        usize::try_from(to.checked_sub(from)?.max(0)).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{parse, verify};

    use super::loops_on_one_thread;

    #[test]
    fn the_prelude_knows_as_many_terms_and_tables() {
        let prelude = include_str!("../prelude/ordered_scatter.cu");
        assert!(prelude.contains(&format!("EB_STAGE = {},", super::STAGE)));
        assert!(prelude.contains(&format!("EB_TABLES = {},", super::TABLES)));
        assert!(prelude.contains(&format!("EB_RUN = {},", ebbtide_ir::RUN)));
    }

    /// How many loops of this program one thread runs: `for i in par(..) { for j in 0..times { y[k[i]] += x[i]; after } }`.
    fn scatter(times: &str, after: &str) -> usize {
        let text = format!(
            "program p(k: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>, z: &mut Array1<i32>) {{
                for i in par(0..x.len()) {{
                    for j in 0..{times} {{
                        y[k[i] as usize] += x[i];
                        {after}
                    }}
                }}
            }}"
        );
        let program = parse(&text).unwrap();
        let facts = verify(&program).unwrap();
        loops_on_one_thread(&program, &facts).len()
    }

    #[test]
    fn terms_are_noted_however_many_an_iteration_has() {
        assert_eq!(["8", "2000", "x.len()", "k[i] as usize"].map(|times| scatter(times, "")), [0; 4]);
    }

    #[test]
    fn one_thread_runs_loops_whose_terms_cannot_be_counted_beforehand() {
        assert_eq!(["8", "z[i] as usize"].map(|times| scatter(times, "z[i] = 3i32;")), [0, 1]);
    }
}
